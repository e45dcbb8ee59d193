"""SASL authentication of a client's connections: the credentials, and the requests that send them.

The exchange of tokens is in `security.sasl`; here the tokens are sent in SaslHandshake and SaslAuthenticate requests. A
broker may limit the session's lifetime; the connection then authenticates again before it ends (KIP-368).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from millbeck.client.config import ClientConfig
from millbeck.client.errors import UnsupportedByBroker
from millbeck.kernel.environment import Environment, Randomness
from millbeck.kernel.errors import (
    ApiError,
    IllegalSaslState,
    InvalidConfig,
    SaslAuthenticationFailed,
    UnsupportedSaslMechanism,
    from_code,
)
from millbeck.kernel.kerberos import KerberosLogin
from millbeck.security.sasl.exchange import (
    GSSAPI,
    OAUTHBEARER,
    PLAIN,
    SCRAM_SHA_256,
    SCRAM_SHA_512,
    AuthenticationFailed,
    CannotLogIn,
    ClientExchange,
    ClientWork,
    InvalidToken,
    ServerNotTrusted,
)
from millbeck.security.sasl.jaas import LOGIN_MODULES, JaasEntry, LoginModule, parse_jaas
from millbeck.security.sasl.plain import PlainClient
from millbeck.security.sasl.scram import SaltedPasswords, ScramClient
from millbeck.security.sasl.scram_messages import BY_NAME, TOKEN_AUTHENTICATION
from millbeck.wire.messages.authentication import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

if TYPE_CHECKING:
    from millbeck.client.oauth.settings import TokenSettings

R = TypeVar("R")

MECHANISMS: Final = (PLAIN, SCRAM_SHA_256, SCRAM_SHA_512, OAUTHBEARER, GSSAPI)
RENEWED_AFTER: Final = (0.85, 0.95)
"""The range of the fraction of its lifetime after which a session is renewed; chosen at random, as in Java's client, so
that many clients do not authenticate at the same time."""
RENEWED_AFTER_S_MIN: Final = 1.1
"""Brokers refuse to renew a session within its first second."""
_NONCE_BITS: Final = 160
_TOKENS_MAX: Final = 10
"""The maximum number of tokens in an exchange, more than any mechanism needs."""


class Ask(Protocol):
    async def __call__(self, message: object, response: type[R], *, version_min: int = 0) -> R:
        """Send a request of the authentication and return the response; raises `ApiError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslCredentials:
    """The credentials with which the connections of one client log in."""

    mechanism: str
    begin: Callable[[str], Awaitable[ClientExchange]]
    """Starts a new exchange with the server of this host name; it may wait for a token."""
    in_thread: Callable[..., Awaitable[Any]]
    randomness: Randomness
    who: str
    """The user in messages, such as ``user alice``."""
    settings: str
    """The settings that are named in the message if the login is refused."""
    subject: Callable[[], str | None]
    """The name of its principal, None while it is not known: with tokens, before the first one."""

    def renewal_s(self, lifetime_ms: int) -> float:
        """The time after which to authenticate again, in seconds."""
        lowest, highest = RENEWED_AFTER
        part = lowest + (highest - lowest) * self.randomness.below(1 << 16) / (1 << 16)
        return max(lifetime_ms / 1000 * part, RENEWED_AFTER_S_MIN)


async def authenticate(ask: Ask, exchange: ClientExchange, credentials: SaslCredentials, peer: str) -> int:
    """Log in; returns the session's lifetime in milliseconds, 0 when it is unlimited. Raises `ApiError`."""
    try:
        shaken = await ask(SaslHandshakeRequest(credentials.mechanism), SaslHandshakeResponse, version_min=1)
    except UnsupportedByBroker as error:
        raise UnsupportedByBroker(f"{peer} does not support SaslAuthenticate: it is older than Kafka 1.0") from error
    if shaken.error_code:
        raise _handshake_refused(shaken, credentials, peer)
    token = await _next_token(exchange.begin, credentials, peer)
    for _ in range(_TOKENS_MAX):
        if token is None:
            break
        answer = await ask(SaslAuthenticateRequest(token), SaslAuthenticateResponse)
        if answer.error_code:
            raise _refused(answer.error_code, answer.error_message or "", credentials, peer)
        token = await _next_token(partial(exchange.step, answer.auth_bytes), credentials, peer)
        lifetime_ms = answer.session_lifetime_ms
    if not exchange.is_complete:
        raise SaslAuthenticationFailed(f"{peer} did not complete the exchange of {credentials.mechanism}")
    return lifetime_ms


async def _next_token(
    make: Callable[[], bytes | ClientWork | None], credentials: SaslCredentials, peer: str
) -> bytes | None:
    try:
        step = make()
        if isinstance(step, ClientWork):
            return step.then(await credentials.in_thread(step.job, *step.arguments))
        return step
    except AuthenticationFailed as error:
        raise _refused(SaslAuthenticationFailed.code, str(error), credentials, peer) from error
    except CannotLogIn as error:
        who = f"{credentials.who} cannot log in to {peer} by {credentials.mechanism}"
        raise SaslAuthenticationFailed(f"{who}: {error} (see {credentials.settings})") from error
    except (ServerNotTrusted, InvalidToken) as error:
        raise SaslAuthenticationFailed(f"{peer} is not trusted: {error}") from error


def _handshake_refused(shaken: SaslHandshakeResponse, credentials: SaslCredentials, peer: str) -> ApiError:
    if shaken.error_code == UnsupportedSaslMechanism.code:
        offered = ", ".join(shaken.mechanisms)
        return UnsupportedSaslMechanism(
            f"{peer} does not offer {credentials.mechanism}: set sasl.mechanism to one of {offered}"
        )
    if shaken.error_code == IllegalSaslState.code:
        return IllegalSaslState(
            f"{peer} does not use SASL on this port: set security.protocol to PLAINTEXT or SSL, or use another port"
        )
    return from_code(shaken.error_code, f"{peer} refused the SASL handshake")


def _refused(code: int, text: str, credentials: SaslCredentials, peer: str) -> ApiError:
    reason = text or "no reason given"
    return from_code(code, f"{peer} refused {credentials.who}: {reason} (see {credentials.settings})")


# credentials


def password_credentials(
    environment: Environment, mechanism: str, user: str, password: str, *, is_token: bool = False, settings: str
) -> SaslCredentials:
    """Credentials for PLAIN or SCRAM."""
    derived = SaltedPasswords()

    async def begin(host: str) -> ClientExchange:
        if mechanism == PLAIN:
            return PlainClient(user, password)
        nonce = f"{environment.randomness.below(1 << _NONCE_BITS):040x}"
        return ScramClient(BY_NAME[mechanism], user, password, nonce, is_token=is_token, derived=derived)

    return SaslCredentials(
        mechanism=mechanism,
        begin=begin,
        in_thread=environment.threads.run,
        randomness=environment.randomness,
        who=f"{'token' if is_token else 'user'} {user}",
        settings=settings,
        subject=lambda: user,
    )


def oauth_credentials(environment: Environment, settings: TokenSettings) -> SaslCredentials:
    """Credentials for OAUTHBEARER."""
    # Imported here because most clients use no tokens.
    from millbeck.client.oauth.token_source import TokenSource
    from millbeck.security.sasl.oauthbearer import OauthClient

    source = TokenSource(environment, settings)

    async def begin(host: str) -> ClientExchange:
        return OauthClient(await source.token(), settings.extensions)

    return SaslCredentials(
        mechanism=OAUTHBEARER,
        begin=begin,
        in_thread=environment.threads.run,
        randomness=environment.randomness,
        who=settings.who,
        settings="sasl.oauthbearer.*, and the log of the broker",
        subject=lambda: source.subject,
    )


def kerberos_credentials(
    environment: Environment, login: KerberosLogin, service: str, *, settings: str, subject: str | None = None
) -> SaslCredentials:
    """Credentials for GSSAPI; ``subject`` is the name of the principal, if it is known. Raises `InvalidConfig`."""
    # Imported here because most clients do not use Kerberos.
    from millbeck.security.sasl.gssapi import GssapiClient

    kerberos = environment.kerberos
    if kerberos is None:
        raise InvalidConfig("sasl.mechanism: there is no GSSAPI here")

    async def begin(host: str) -> ClientExchange:
        return GssapiClient(partial(kerberos.initiate, login, service, host))

    return SaslCredentials(
        mechanism=GSSAPI,
        begin=begin,
        in_thread=environment.threads.run,
        randomness=environment.randomness,
        who=login.principal or "the owner of the ticket cache",
        settings=settings,
        subject=lambda: subject,
    )


def jaas_credentials(environment: Environment, mechanism: str, entry: JaasEntry, setting: str) -> SaslCredentials:
    """Credentials from a JAAS entry; raises `InvalidConfig` that names the setting."""
    user, password = entry.options.get("username", ""), entry.options.get("password", "")
    if not user or not password:
        missing = "username" if not user else "password"
        raise InvalidConfig(f'{setting}: {missing}="…" of {entry.module.value} is missing')
    is_token = entry.options.get(TOKEN_AUTHENTICATION, "").lower() == "true"
    return password_credentials(environment, mechanism, user, password, is_token=is_token, settings=setting)


def client_credentials(config: ClientConfig, environment: Environment) -> SaslCredentials:
    """The credentials of a client whose ``security.protocol`` has SASL; raises `InvalidConfig` naming the setting."""
    setting = ClientConfig.sasl_jaas_config.name
    entry = None if config.sasl_jaas_config is None else parse_jaas(config.sasl_jaas_config.reveal(), setting)
    mechanism = _mechanism(config, entry)
    _check_module(entry, mechanism, setting)
    if mechanism == OAUTHBEARER:
        from millbeck.client.oauth.settings import token_settings
        from millbeck.security.oauth.access import EVERYTHING

        options = {} if entry is None else entry.options
        read = token_settings(lambda declared: getattr(config, declared.attribute), options, EVERYTHING)
        return oauth_credentials(environment, read)
    if mechanism == GSSAPI:
        return _kerberos_of(config, environment, entry, setting)
    if entry is not None:
        if config.sasl_username is not None or config.sasl_password is not None:
            raise InvalidConfig(f"{setting}: set either it, or sasl.username and sasl.password")
        return jaas_credentials(environment, mechanism, entry, setting)
    if not config.sasl_username or config.sasl_password is None:
        missing = "sasl.username" if not config.sasl_username else "sasl.password"
        raise InvalidConfig(
            f"{missing} is not set: security.protocol={config.security_protocol} with sasl.mechanism={mechanism} needs "
            "sasl.username and sasl.password, or sasl.jaas.config"
        )
    return password_credentials(
        environment,
        mechanism,
        config.sasl_username,
        config.sasl_password.reveal(),
        settings="sasl.username and sasl.password",
    )


def _kerberos_of(
    config: ClientConfig, environment: Environment, entry: JaasEntry | None, setting: str
) -> SaslCredentials:
    from millbeck.security.sasl.kerberos_settings import DEFAULT_SERVICE, SERVICE_NAME, login_of

    service = config.sasl_kerberos_service_name
    if entry is not None:
        service = entry.options.get(SERVICE_NAME) or service
        return kerberos_credentials(environment, login_of(entry, setting), service or DEFAULT_SERVICE, settings=setting)
    login = KerberosLogin(keytab=config.sasl_kerberos_keytab or "", principal=config.sasl_kerberos_principal or "")
    return kerberos_credentials(environment, login, service or DEFAULT_SERVICE, settings="sasl.kerberos.*")


def _check_module(entry: JaasEntry | None, mechanism: str, setting: str) -> None:
    if entry is not None and entry.module is not LOGIN_MODULES[mechanism]:
        raise InvalidConfig(
            f"{setting}: {entry.module.value} cannot be used with sasl.mechanism={mechanism}: use "
            f"{LOGIN_MODULES[mechanism].value}"
        )


def _mechanism(config: ClientConfig, entry: JaasEntry | None) -> str:
    named = config.sasl_mechanism or config.sasl_mechanisms
    if named is None and (config.sasl_kerberos_service_name or (entry and entry.module is LoginModule.GSSAPI)):
        named = GSSAPI  # the default of Java's clients, where it is meant
    if named is None:
        raise InvalidConfig(
            f"sasl.mechanism is not set: security.protocol={config.security_protocol} needs one of "
            f"{', '.join(MECHANISMS)}"
        )
    if named.upper() not in MECHANISMS:
        raise InvalidConfig(f"sasl.mechanism: {named[:100]} is not known: use {', '.join(MECHANISMS)}")
    return named.upper()
