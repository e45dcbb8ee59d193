"""The OAUTHBEARER settings of one listener: which tokens it accepts (KIP-768).

Kafka configures a class for each step. Here the names of Kafka's own classes select built-in implementations, and any
other is refused. Without ``sasl.server.callback.handler.class`` Kafka accepts unsecured tokens, which anyone can
create. Here signatures are verified as soon as keys are configured, and unsecured tokens are accepted only on loopback
listeners.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.options import Option
from millbeck.kernel.units import SECOND_MS
from millbeck.security.oauth.access import Allowed, Location, parse_location
from millbeck.security.oauth.claims import ClaimRules
from millbeck.security.oauth.keys import check_installed
from millbeck.server.config.sections.oauth import (
    DEFAULT_JWT_VALIDATOR,
    OauthAccessOptions,
    OauthServerOptions,
)
from millbeck.server.config.sections.sasl import SaslOptions

if TYPE_CHECKING:
    from millbeck.client.oauth.settings import TokenSettings

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
VALIDATOR_HANDLER: Final = f"{_PACKAGE}.OAuthBearerValidatorCallbackHandler"
UNSECURED_HANDLER: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
VALIDATORS: Final = (DEFAULT_JWT_VALIDATOR, f"{_PACKAGE}.BrokerJwtValidator")
REQUEST_TIMEOUT_MS: Final = 10_000
"""The default of sasl.login.connect.timeout.ms and sasl.login.read.timeout.ms."""
_SSL_PREFIX: Final = "ssl."
_PRINCIPAL_CLAIM: Final = "unsecuredValidatorPrincipalClaimName"
_SCOPE_CLAIM: Final = "unsecuredValidatorScopeClaimName"
_REQUIRED_SCOPE: Final = "unsecuredValidatorRequiredScope"
_CLOCK_SKEW: Final = "unsecuredValidatorAllowableClockSkewMs"

Read = Callable[[Option[Any]], Any]
"""The value of an option for this mechanism of this listener."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEndpoint:
    """The URL of an identity provider's keys, and how to fetch them."""

    location: Location
    refresh_ms: int
    backoff_ms: int
    backoff_ms_max: int
    connect_timeout_ms: int
    read_timeout_ms: int
    tls: tuple[tuple[str, str], ...] = ()
    """The ``ssl.*`` options of the JAAS entry, as in Kafka; without any, the system's certificates are trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OauthSettings:
    keys: KeyEndpoint | None
    """The endpoint of the keys; None means that unsecured tokens are accepted."""
    rules: ClaimRules

    def warnings(self) -> list[str]:
        """Warnings about settings that are not strict enough for production."""
        if self.keys is None:
            return ["unsecured tokens are accepted: every client that can connect can use any principal"]
        found = []
        if self.rules.issuer is None:
            found.append(f"tokens of any issuer are accepted: set {OauthServerOptions.expected_issuer.name}")
        if not self.rules.audiences:
            found.append(
                "only tokens without an audience (claim aud) are accepted: set "
                f"{OauthServerOptions.expected_audience.name}"
            )
        if self.keys.location.path is None and not self.keys.location.is_encrypted:
            found.append(
                f"{OauthServerOptions.jwks_endpoint_url.name} is not https: an attacker who modifies the response "
                "can forge tokens"
            )
        return found


def allowed_by(texts: Mapping[str, str]) -> Allowed:
    """The URLs and files allowed by the server's properties file and ``KAFKA_OPTS``; without a list nothing is
    allowed."""
    urls = OauthAccessOptions.allowed_urls
    files = OauthAccessOptions.allowed_files
    return Allowed(
        urls=frozenset(urls.parse(texts.get(urls.name, ""))), files=frozenset(files.parse(texts.get(files.name, "")))
    )


def oauth_settings(
    read: Read, jaas: Mapping[str, str], *, where: str, is_local: bool, allowed: Allowed
) -> OauthSettings:
    """The OAUTHBEARER settings of one listener; ``where`` is its name in messages. Raises `InvalidConfig`."""
    url: str | None = read(OauthServerOptions.jwks_endpoint_url)
    handler: str | None = read(SaslOptions.server_callback_handler_class) or None
    if handler is not None:
        handler = full_name(handler, (VALIDATOR_HANDLER, UNSECURED_HANDLER))
    if handler not in (None, VALIDATOR_HANDLER, UNSECURED_HANDLER):
        raise InvalidConfig(
            f"{SaslOptions.server_callback_handler_class.name}: {handler[:200]} is not known: use {VALIDATOR_HANDLER} "
            f"({where})"
        )
    if handler == UNSECURED_HANDLER or (handler is None and not url):
        return _unsecured(jaas, where=where, is_local=is_local)
    _check_validator(read(OauthServerOptions.jwt_validator_class))
    if not url:
        raise InvalidConfig(
            f"The OAuth validator for the broker requires {OauthServerOptions.jwks_endpoint_url.name} to be configured "
            f"so that JWT signatures can be verified ({where})"
        )
    check_installed(SaslOptions.enabled_mechanisms.name)
    return OauthSettings(keys=_endpoint(read, url, jaas, allowed), rules=_rules(read))


def peer_tokens(read: Read, jaas: Mapping[str, str], static: Mapping[str, str]) -> TokenSettings:
    """The source of this node's own tokens. Raises `InvalidConfig`."""
    from millbeck.client.oauth.settings import token_settings
    from millbeck.server.config.broker_options import BROKER_OPTIONS

    def read_client_option(declared: Option[Any]) -> Any:
        """Read a client option by the broker option of the same name; options that only clients have keep their
        default.
        """
        option = BROKER_OPTIONS.by_name.get(declared.name)
        return declared.default if option is None else read(option)

    return token_settings(read_client_option, jaas, allowed_by(static))


def _check_validator(name: str) -> None:
    if full_name(name, VALIDATORS) not in VALIDATORS:
        raise InvalidConfig(
            f"{OauthServerOptions.jwt_validator_class.name}: {name[:200]} does not verify signatures, or is not known: "
            f"use {' or '.join(VALIDATORS)}"
        )


def _endpoint(read: Read, url: str, jaas: Mapping[str, str], allowed: Allowed) -> KeyEndpoint:
    connect_ms, read_ms = read(SaslOptions.login_connect_timeout_ms), read(SaslOptions.login_read_timeout_ms)
    return KeyEndpoint(
        location=parse_location(url, OauthServerOptions.jwks_endpoint_url.name, allowed),
        refresh_ms=_positive(read, OauthServerOptions.jwks_endpoint_refresh_ms),
        backoff_ms=_positive(read, OauthServerOptions.jwks_endpoint_retry_backoff_ms),
        backoff_ms_max=_positive(read, OauthServerOptions.jwks_endpoint_retry_backoff_ms_max),
        connect_timeout_ms=connect_ms or REQUEST_TIMEOUT_MS,
        read_timeout_ms=read_ms or REQUEST_TIMEOUT_MS,
        tls=tuple(sorted((name, value) for name, value in jaas.items() if name.startswith(_SSL_PREFIX))),
    )


def _rules(read: Read) -> ClaimRules:
    audiences: Collection[str] = read(OauthServerOptions.expected_audience)
    issuer: str | None = read(OauthServerOptions.expected_issuer)
    skew_seconds: int = read(OauthServerOptions.clock_skew_seconds)
    if skew_seconds < 0:
        raise InvalidConfig(f"{OauthServerOptions.clock_skew_seconds.name} must be at least 0")
    return ClaimRules(
        audiences=tuple(audiences),
        issuer=issuer or None,
        clock_skew_ms=skew_seconds * SECOND_MS,
        subject_claim=_claim_name(read, OauthServerOptions.sub_claim_name),
        scope_claim=_claim_name(read, OauthServerOptions.scope_claim_name),
    )


def _unsecured(jaas: Mapping[str, str], *, where: str, is_local: bool) -> OauthSettings:
    if not is_local:
        raise InvalidConfig(
            f"{OauthServerOptions.jwks_endpoint_url.name} is not set: without it {where} would accept tokens that "
            "anyone can create. Set it to the address of the identity provider's keys, or bind the listener to "
            "localhost"
        )
    skew = jaas.get(_CLOCK_SKEW, "0")
    if not skew.isascii() or not skew.isdigit():
        raise InvalidConfig(f"sasl.jaas.config: {_CLOCK_SKEW} must be a number of milliseconds ({where})")
    return OauthSettings(
        keys=None,
        rules=ClaimRules(
            clock_skew_ms=int(skew[:12]),
            subject_claim=jaas.get(_PRINCIPAL_CLAIM, "sub"),
            scope_claim=jaas.get(_SCOPE_CLAIM, "scope"),
            requires_issue_time=False,
            required_scope=tuple(jaas.get(_REQUIRED_SCOPE, "").split()),
        ),
    )


def _claim_name(read: Read, option: Option[str]) -> str:
    name: str = read(option)
    if not name:
        raise InvalidConfig(f"{option.name} must not be empty")
    return name


def _positive(read: Read, option: Option[int]) -> int:
    value: int = read(option)
    if value < 1:
        raise InvalidConfig(f"{option.name} must be at least 1")
    return value
