"""The SASL mechanisms of a node's listeners: built from its configuration and the credentials in the metadata."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.kerberos import KerberosFailed
from millbeck.metadata.image.credentials import ScramCredential, ScramImage
from millbeck.security.delegation_tokens import is_expired, token_credential
from millbeck.security.principal import stored_principal
from millbeck.security.sasl.authentication import Mechanism
from millbeck.security.sasl.exchange import PLAIN, ServerExchange, Work
from millbeck.security.sasl.jaas import plain_users
from millbeck.security.sasl.plain import CheckedPasswords, ListedPasswords, PlainServer
from millbeck.security.sasl.scram import (
    Credential,
    KnownUser,
    ScramServer,
    StoredCredential,
    VerifiedPasswords,
    decoy_credential,
    user_principal,
)
from millbeck.security.sasl.scram_messages import BY_NAME, ScramMechanism
from millbeck.server.seams import load_seam

if TYPE_CHECKING:
    from millbeck.kernel.environment import Randomness
    from millbeck.server.broker import Broker
    from millbeck.server.config.listener_oauth import OauthSettings
    from millbeck.server.config.listener_sasl import KerberosSettings, ListenerSasl, MechanismSettings
    from millbeck.server.requests.token_keys import TokenKeys

_NONCE_BITS: Final = 160
DERIVED_MAX: Final = 1000
PASSWORDS: Final = "millbeck.password_checker"
"""The group of entry points that check passwords of PLAIN."""


def make_nonce(randomness: Randomness) -> str:
    return f"{randomness.below(1 << _NONCE_BITS):040x}"


def mechanisms_of(
    broker: Broker, settings: ListenerSasl, token_keys: Callable[[], TokenKeys], plugins: dict[str, Any]
) -> dict[str, Mechanism]:
    """The mechanisms of a listener, by name. Raises `InvalidConfig`.

    ``plugins`` keeps those that are loaded, by setting: a change of other settings does not load them again.
    """
    return {
        name: Mechanism(
            begin=_begin(broker, mechanism, token_keys, plugins), reauthenticate_ms=mechanism.reauthenticate_ms
        )
        for name, mechanism in settings.mechanisms.items()
    }


def _begin(
    broker: Broker, settings: MechanismSettings, token_keys: Callable[[], TokenKeys], plugins: dict[str, Any]
) -> Callable[[], ServerExchange]:
    if settings.oauth is not None:
        return _begin_oauth(broker, settings.oauth, token_keys)
    if settings.kerberos is not None:
        return _begin_kerberos(broker, settings.kerberos, settings.jaas_setting)
    users = MetadataCredentials(broker)
    if settings.name == PLAIN:
        if settings.verifies_with_scram:
            return partial(PlainServer, VerifiedPasswords(users))
        if settings.checked_by is not None:
            setting, name = settings.checked_by
            if setting not in plugins:
                plugins[setting] = load_seam(PASSWORDS, setting, name, broker.config.texts, method="check")
            return partial(PlainServer, CheckedPasswords(plugins[setting], partial(broker.seam_failed, setting)))
        assert settings.jaas is not None
        return partial(PlainServer, ListedPasswords(plain_users(settings.jaas)))
    return partial(ScramServer, BY_NAME[settings.name], users, partial(make_nonce, broker.environment.randomness))


def _begin_oauth(
    broker: Broker, settings: OauthSettings, token_keys: Callable[[], TokenKeys]
) -> Callable[[], ServerExchange]:
    # Imported late: most nodes have no tokens.
    from millbeck.security.oauth.validation import SignedTokens, TokenValidator, UnsecuredTokens
    from millbeck.security.sasl.oauthbearer import OauthServer

    wall_ms = broker.environment.clock.wall_ms
    validator: TokenValidator
    if settings.keys is None:
        validator = UnsecuredTokens(settings.rules, wall_ms)
    else:
        validator = SignedTokens(token_keys().of(settings.keys), settings.rules, wall_ms)
    return partial(OauthServer, validator)


def _begin_kerberos(broker: Broker, settings: KerberosSettings, setting: str) -> Callable[[], ServerExchange]:
    # Imported late: most nodes do not use Kerberos.
    from millbeck.security.kerberos_names import KerberosNames
    from millbeck.security.sasl.gssapi import GssapiServer

    kerberos = broker.environment.kerberos
    if kerberos is None:
        raise InvalidConfig(f"{setting}: there is no GSSAPI here")
    try:
        kerberos.check_acceptor(settings.login)
    except KerberosFailed as error:
        raise InvalidConfig(f"{setting}: {error}") from error
    names = KerberosNames(settings.rules, kerberos.default_realm())
    return partial(GssapiServer, partial(kerberos.accept, settings.login), names.short_name)


class MetadataCredentials:
    """The SCRAM credentials in the metadata image, for one mechanism of a listener."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._samples = _Samples()
        self._derived: dict[str, Credential] = {}
        """The credentials of delegation tokens for one mechanism, by token id."""

    def user(self, mechanism: ScramMechanism, name: str) -> KnownUser | None:
        credential = self._broker.image.scram.by_user.get((mechanism.number, name))
        return None if credential is None else KnownUser(credential=credential, principal=user_principal(name))

    def token(self, mechanism: ScramMechanism, token_id: str) -> KnownUser | Work | None:
        """The credential of a delegation token. It is derived from the token at the first login, which makes that login
        slower."""
        secret, now_ms = self._broker.config.token_secret, self._broker.environment.clock.wall_ms()
        token = self._broker.image.delegation_tokens.by_id.get(token_id)
        if not secret or token is None or is_expired(token, now_ms):
            return None
        owner = replace(stored_principal(token.owner), is_token=True)

        def known(credential: Credential) -> Any:
            if len(self._derived) >= DERIVED_MAX:
                self._derived.clear()
            self._derived[token_id] = credential
            return KnownUser(credential=credential, principal=owner, expires_at_ms=token.expiration_timestamp)

        derived = self._derived.get(token_id)
        return Work(token_credential, (secret, token_id, mechanism), known) if derived is None else known(derived)

    @property
    def strongest(self) -> ScramMechanism:
        image = self._broker.image.scram
        return next(
            (each for each in reversed(ScramMechanism) if self._samples.of(image, each)), ScramMechanism.SHA_512
        )

    def decoy(self, mechanism: ScramMechanism, name: str) -> StoredCredential:
        sample = self._samples.of(self._broker.image.scram, mechanism)
        token_secret = self._broker.config.token_secret
        if token_secret:
            # It stays when users change: with salts that do, a client could tell in time who is unknown.
            secret = mechanism.hmac(token_secret.encode(), b"unknown users")
        else:
            # Clients know the cluster id; they do not know a stored key, which is the same on every node.
            secret = self._broker.cluster_id.encode() + (b"" if sample is None else sample.server_key)
        return decoy_credential(mechanism, name, secret=secret, like=sample)


class _Samples:
    """One existing credential of each mechanism, that of the first user by name, looked up once per metadata image."""

    def __init__(self) -> None:
        self._found_in: ScramImage | None = None
        self._samples: Mapping[int, ScramCredential] = {}

    def of(self, image: ScramImage, mechanism: ScramMechanism) -> ScramCredential | None:
        if image is not self._found_in:
            first: dict[int, str] = {}
            for number, name in image.by_user:
                if number not in first or name < first[number]:
                    first[number] = name
            self._samples = {number: image.by_user[number, name] for number, name in first.items()}
            self._found_in = image
        return self._samples.get(mechanism.number)
