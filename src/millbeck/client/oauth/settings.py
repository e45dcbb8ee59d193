"""The evaluated OAUTHBEARER settings of a client, or of a node that connects to another node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from millbeck.client.http import HttpLimits
from millbeck.client.oauth.options import DEFAULT_RETRIEVER, ClientOauthOptions
from millbeck.client.tls_options import ClientTlsOptions
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.options import ConfigLayers, Option, Secret
from millbeck.security.oauth.access import Allowed, Location, check_file, parse_location
from millbeck.security.oauth.assertion import ALGORITHMS, AssertionClaims
from millbeck.security.oauth.client_token import RefreshWindow
from millbeck.security.oauth.token_request import CLIENT_CREDENTIALS, JWT_BEARER
from millbeck.security.sasl.oauthbearer import check_extensions

_PACKAGE: Final = DEFAULT_RETRIEVER.rpartition(".")[0]
LOGIN_HANDLER: Final = f"{_PACKAGE}.OAuthBearerLoginCallbackHandler"
UNSECURED_LOGIN_HANDLER: Final = f"{_PACKAGE}.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"
_CLIENT_ID: Final = "clientId"
_CLIENT_SECRET: Final = "clientSecret"
_SCOPE: Final = "scope"
_EXTENSION: Final = "extension_"
_SSL: Final = "ssl."
_UNSECURED: Final = "unsecuredLogin"
_CONNECT_MS: Final = 4000
_READ_MS: Final = 5000
_OIDC: Final = "oidc"

Read = Callable[[Option[Any]], Any]
"""Returns the value of one of `ClientOauthOptions`."""


class Retriever(Enum):
    """The ways to get tokens; the values are the names of Kafka's classes."""

    CLIENT_CREDENTIALS = f"{_PACKAGE}.ClientCredentialsJwtRetriever"
    JWT_BEARER = f"{_PACKAGE}.JwtBearerJwtRetriever"
    FILE = f"{_PACKAGE}.FileJwtRetriever"
    UNSECURED = UNSECURED_LOGIN_HANDLER


_GRANTS: Final = {CLIENT_CREDENTIALS: Retriever.CLIENT_CREDENTIALS, JWT_BEARER: Retriever.JWT_BEARER}


@dataclass(frozen=True, slots=True, kw_only=True)
class AssertionSource:
    """A file with an assertion, or a key that signs one."""

    file: str | None = None
    key_file: str = ""
    passphrase: Secret | None = None
    template_file: str | None = None
    claims: AssertionClaims = field(default_factory=AssertionClaims)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSettings:
    retriever: Retriever
    location: Location | None = None
    client_id: str | None = None
    client_secret: Secret | None = None
    scope: str | None = None
    url_encodes: bool = False
    assertion: AssertionSource | None = None
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    subject_claim: str = "sub"
    limits: HttpLimits = field(default_factory=HttpLimits)
    backoff_ms: int = 100
    backoff_ms_max: int = 10_000
    window: RefreshWindow = field(default_factory=RefreshWindow)
    tls: ClientTlsOptions
    """The TLS context for https."""
    claims: Mapping[str, Any] = field(default_factory=dict)
    """For unsecured tokens only."""
    lifetime_s: float = 3600
    """For unsecured tokens only."""

    @property
    def who(self) -> str:
        """The subject of messages: the client, or the token."""
        if self.retriever is Retriever.FILE and self.location is not None:
            return f"the token in {self.location.path}"
        return f"client {self.client_id}" if self.client_id else "the token"


def token_settings(read: Read, jaas: Mapping[str, str], allowed: Allowed) -> TokenSettings:
    """Evaluate the settings; ``jaas`` are the options of OAuthBearerLoginModule. Raises `InvalidConfig` naming the
    setting."""
    retriever, location = _retriever(read, jaas, allowed)
    factor, jitter = (
        read(ClientOauthOptions.sasl_login_refresh_window_factor),
        read(ClientOauthOptions.sasl_login_refresh_window_jitter),
    )
    connect_ms = read(ClientOauthOptions.sasl_login_connect_timeout_ms) or _CONNECT_MS
    read_ms = read(ClientOauthOptions.sasl_login_read_timeout_ms) or _READ_MS
    common: dict[str, Any] = {
        "retriever": retriever,
        "location": location,
        "scope": read(ClientOauthOptions.sasl_oauthbearer_scope) or jaas.get(_SCOPE) or None,
        "url_encodes": read(ClientOauthOptions.sasl_oauthbearer_header_urlencode),
        "subject_claim": read(ClientOauthOptions.sasl_oauthbearer_sub_claim_name),
        "limits": HttpLimits(connect_s=connect_ms / 1000, answer_s=read_ms / 1000),
        "backoff_ms": read(ClientOauthOptions.sasl_login_retry_backoff_ms),
        "backoff_ms_max": read(ClientOauthOptions.sasl_login_retry_backoff_max_ms),
        "window": RefreshWindow(
            factor=factor,
            jitter=jitter,
            period_s_min=read(ClientOauthOptions.sasl_login_refresh_min_period_seconds),
            buffer_s=read(ClientOauthOptions.sasl_login_refresh_buffer_seconds),
        ),
        "tls": _tls(read, jaas),
        "extensions": _extensions(read, jaas, _EXTENSION),
    }
    match retriever:
        case Retriever.CLIENT_CREDENTIALS:
            return TokenSettings(**common, **_client_credentials(read, jaas, allowed))
        case Retriever.JWT_BEARER:
            return TokenSettings(**common, assertion=_assertion(read, allowed), client_id=_client_id(read, jaas))
        case Retriever.UNSECURED:
            common["extensions"] = _extensions(read, jaas, f"{_UNSECURED}Extension_")
            common["subject_claim"] = jaas.get(f"{_UNSECURED}PrincipalClaimName", "sub")
            return TokenSettings(**common, **_unsecured(jaas, common["subject_claim"]))
        case _:
            return TokenSettings(**common)


def _retriever(read: Read, jaas: Mapping[str, str], allowed: Allowed) -> tuple[Retriever, Location | None]:
    handler = read(ClientOauthOptions.sasl_login_callback_handler_class) or None
    setting = ClientOauthOptions.sasl_oauthbearer_token_endpoint_url.name
    url: str | None = read(ClientOauthOptions.sasl_oauthbearer_token_endpoint_url) or None
    if handler is not None:
        handler = full_name(handler, (LOGIN_HANDLER, UNSECURED_LOGIN_HANDLER))
    if handler not in (None, LOGIN_HANDLER, UNSECURED_LOGIN_HANDLER):
        raise InvalidConfig(
            f"{ClientOauthOptions.sasl_login_callback_handler_class.name}: {handler[:200]} is not known: use "
            f"{LOGIN_HANDLER}"
        )
    method = read(ClientOauthOptions.sasl_oauthbearer_method)
    if method is not None and method.lower() != _OIDC:
        raise InvalidConfig(f"{ClientOauthOptions.sasl_oauthbearer_method.name}: only {_OIDC} is available")
    has_claims = any(name.startswith(_UNSECURED) for name in jaas)
    if handler == UNSECURED_LOGIN_HANDLER or (handler is None and url is None and has_claims):
        return Retriever.UNSECURED, None
    if url is None:
        raise InvalidConfig(f"{setting} is not set: sasl.mechanism=OAUTHBEARER needs the source of tokens")
    location = parse_location(url, setting, allowed)
    retriever = _named_retriever(read, location)
    if (retriever is Retriever.FILE) != (location.path is not None):
        kind = "a file: URL" if retriever is Retriever.FILE else "an https: URL"
        raise InvalidConfig(f"{setting}: {retriever.value.rpartition('.')[2]} needs {kind}")
    return retriever, location


def _named_retriever(read: Read, location: Location) -> Retriever:
    known = [each for each in Retriever if each is not Retriever.UNSECURED]
    given = read(ClientOauthOptions.sasl_oauthbearer_jwt_retriever_class)
    name = full_name(given, (DEFAULT_RETRIEVER, *(each.value for each in known)))
    grant = read(ClientOauthOptions.sasl_oauthbearer_grant_type)
    if name == DEFAULT_RETRIEVER and grant is not None:
        if grant not in _GRANTS:
            setting = ClientOauthOptions.sasl_oauthbearer_grant_type.name
            raise InvalidConfig(f"{setting}: {grant[:200]} is not one of {', '.join(_GRANTS)}")
        return _GRANTS[grant]
    if name == DEFAULT_RETRIEVER:
        return Retriever.CLIENT_CREDENTIALS if location.path is None else Retriever.FILE
    for retriever in known:
        if name == retriever.value:
            return retriever
    raise InvalidConfig(
        f"{ClientOauthOptions.sasl_oauthbearer_jwt_retriever_class.name}: {name[:200]} is not known: use "
        f"{DEFAULT_RETRIEVER}, {', '.join(each.value for each in known)}"
    )


def _client_id(read: Read, jaas: Mapping[str, str]) -> str | None:
    return (
        read(ClientOauthOptions.sasl_oauthbearer_client_id)
        or read(ClientOauthOptions.sasl_oauthbearer_rd_client_id)
        or jaas.get(_CLIENT_ID)
        or None
    )


def _client_credentials(read: Read, jaas: Mapping[str, str], allowed: Allowed) -> dict[str, Any]:
    """The client credentials grant: with an assertion if one is configured, as in Kafka; otherwise with a secret."""
    client_id = _client_id(read, jaas)
    if read(ClientOauthOptions.sasl_oauthbearer_assertion_file) or read(
        ClientOauthOptions.sasl_oauthbearer_assertion_claim_iss
    ):
        return {"client_id": client_id, "assertion": _assertion(read, allowed)}
    secret = (
        read(ClientOauthOptions.sasl_oauthbearer_client_secret)
        or read(ClientOauthOptions.sasl_oauthbearer_rd_client_secret)
        or (Secret(jaas[_CLIENT_SECRET]) if jaas.get(_CLIENT_SECRET) else None)
    )
    for value, declared in (
        (client_id, ClientOauthOptions.sasl_oauthbearer_client_id),
        (secret, ClientOauthOptions.sasl_oauthbearer_client_secret),
    ):
        if not value:
            raise InvalidConfig(f"{declared.name} is not set: sasl.mechanism=OAUTHBEARER needs it to get tokens")
    return {"client_id": client_id, "client_secret": secret}


def _assertion(read: Read, allowed: Allowed) -> AssertionSource:
    def path_of(declared: Option[Any]) -> str | None:
        path = read(declared) or None
        return None if path is None else check_file(path, declared.name, allowed)

    file = path_of(ClientOauthOptions.sasl_oauthbearer_assertion_file)
    if file is not None:
        return AssertionSource(file=file)
    key = ClientOauthOptions.sasl_oauthbearer_assertion_private_key_file
    key_file = path_of(key)
    if key_file is None:
        raise InvalidConfig(
            f"{key.name} is not set: set it to sign assertions with this client's key, or set "
            f"{ClientOauthOptions.sasl_oauthbearer_assertion_file.name}"
        )
    algorithm = read(ClientOauthOptions.sasl_oauthbearer_assertion_algorithm).upper()
    if algorithm not in ALGORITHMS:
        setting = ClientOauthOptions.sasl_oauthbearer_assertion_algorithm.name
        raise InvalidConfig(f"{setting}: must be one of {', '.join(ALGORITHMS)}")
    return AssertionSource(
        key_file=key_file,
        passphrase=read(ClientOauthOptions.sasl_oauthbearer_assertion_private_key_passphrase),
        template_file=path_of(ClientOauthOptions.sasl_oauthbearer_assertion_template_file)
        or path_of(ClientOauthOptions.sasl_oauthbearer_rd_template_file),
        claims=AssertionClaims(
            algorithm=algorithm,
            issuer=read(ClientOauthOptions.sasl_oauthbearer_assertion_claim_iss) or None,
            subject=read(ClientOauthOptions.sasl_oauthbearer_assertion_claim_sub) or None,
            audience=read(ClientOauthOptions.sasl_oauthbearer_assertion_claim_aud) or None,
            lifetime_s=read(ClientOauthOptions.sasl_oauthbearer_assertion_claim_exp_seconds),
            valid_before_s=read(ClientOauthOptions.sasl_oauthbearer_assertion_claim_nbf_seconds),
            has_id=read(ClientOauthOptions.sasl_oauthbearer_assertion_claim_jti_include),
        ),
    )


def _extensions(read: Read, jaas: Mapping[str, str], prefix: str) -> dict[str, str]:
    found = {name.removeprefix(prefix): value for name, value in jaas.items() if name.startswith(prefix)}
    for pair in (read(ClientOauthOptions.sasl_oauthbearer_extensions) or "").split(","):
        name, equals, value = pair.strip().partition("=")
        if equals:
            found[name] = value
    try:
        check_extensions(found)
    except ValueError as error:
        raise InvalidConfig(f"extensions of OAUTHBEARER: {error}") from None
    return found


def _tls(read: Read, jaas: Mapping[str, str]) -> ClientTlsOptions:
    texts = {name: value for name, value in jaas.items() if name.startswith(_SSL)}
    known = {declared.name for declared in ClientTlsOptions.options}
    unknown = [name for name in texts if name not in known]
    if unknown:
        raise InvalidConfig(f"sasl.jaas.config: {unknown[0]} is not an available TLS setting")
    options = ClientTlsOptions.resolve(ConfigLayers(static=texts))
    location, pem = read(ClientOauthOptions.https_ca_location), read(ClientOauthOptions.https_ca_pem)
    if location and not options.ssl_truststore_location:
        options = options.replace(ssl_truststore_location=location)
    if pem is not None and options.ssl_truststore_certificates is None:
        options = options.replace(ssl_truststore_certificates=pem)
    return options


def _unsecured(jaas: Mapping[str, str], subject_claim: str) -> dict[str, Any]:
    claims: dict[str, Any] = {}
    for name, value in jaas.items():
        kind, _, claim = name.partition("Claim_")
        match kind.removeprefix(_UNSECURED):
            case "String" if claim:
                claims[claim] = value
            case "Number" if claim:
                claims[claim] = _number(value, name)
            case "List" if claim:
                separator, rest = value[:1], value[1:]
                claims[claim] = rest.split(separator) if separator else []
    if not isinstance(claims.get(subject_claim), str):
        raise InvalidConfig(f'sasl.jaas.config: {_UNSECURED}StringClaim_{subject_claim}="…" is missing')
    lifetime = f"{_UNSECURED}LifetimeSeconds"
    return {"claims": claims, "lifetime_s": _number(jaas.get(lifetime, "3600"), lifetime)}


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidConfig(f"sasl.jaas.config: {name} is not a number") from None
