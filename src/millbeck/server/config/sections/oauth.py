"""SASL/OAUTHBEARER options."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.options import (
    BOOLEAN,
    CLASS,
    INT,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Importance,
    Section,
    Validator,
    between,
    distinct,
    option,
)
from millbeck.kernel.units import HOUR_MS
from millbeck.security.oauth.access import ALLOWED_FILES, ALLOWED_URLS

DEFAULT_JWT_RETRIEVER: Final = "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
DEFAULT_JWT_VALIDATOR: Final = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
_ALGORITHM: Final[Validator[str]] = Validator(
    lambda name: name.upper() in ("ES256", "RS256"), "ES256 or RS256, case-insensitive"
)


class OauthAccessOptions(Section):
    """Which URLs and files OAuth settings may use; read at start, from the server's properties file or
    ``KAFKA_OPTS``."""

    allowed_urls = option(
        ALLOWED_URLS,
        LIST,
        (),
        valid=distinct(),
        doc="The URLs that sasl.oauthbearer.jwks.endpoint.url and sasl.oauthbearer.token.endpoint.url may have, "
        "written exactly as there. A system property in Kafka; here also -D in KAFKA_OPTS.",
    )
    allowed_files = option(
        ALLOWED_FILES,
        LIST,
        (),
        valid=distinct(),
        doc="The paths that sasl.oauthbearer.assertion.* may refer to, written exactly as there. A system "
        "property in Kafka; here also -D in KAFKA_OPTS.",
    )


class OauthServerOptions(Section):
    """How a broker validates tokens."""

    token_endpoint_url = option(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        doc="The URL of the identity provider's token endpoint, from which a node gets the tokens by which it logs in "
        "to other nodes; or a file: URL of a file with a token.",
    )
    jwks_endpoint_url = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        doc="The URL of the identity provider's JWKS, the keys that sign its tokens, or a file: URL. It must be listed "
        "in org.apache.kafka.sasl.oauthbearer.allowed.urls.",
    )
    jwks_endpoint_refresh_ms = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        1 * HOUR_MS,
        importance=Importance.LOW,
        doc="The interval between refreshes of the JWKS.",
    )
    jwks_endpoint_retry_backoff_ms = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        importance=Importance.LOW,
        doc="The initial backoff after a failed refresh of the JWKS.",
    )
    jwks_endpoint_retry_backoff_ms_max = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        importance=Importance.LOW,
        doc="The maximum backoff after failed refreshes of the JWKS.",
    )
    clock_skew_seconds = option(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        importance=Importance.LOW,
        doc="The allowed clock skew when a token's times are validated.",
    )
    expected_audience = option(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.HIGH,
        doc="The accepted audiences; a token must have one of them. Empty: only tokens without an audience.",
    )
    expected_issuer = option(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        importance=Importance.HIGH,
        doc="The expected issuer of tokens; not set: any, if a key of the JWKS signed the token.",
    )
    scope_claim_name = option(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        importance=Importance.LOW,
        doc="The name of the claim with a token's scope.",
    )
    sub_claim_name = option(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        importance=Importance.LOW,
        doc="The name of the claim with a token's subject.",
    )
    jwt_validator_class = option(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        DEFAULT_JWT_VALIDATOR,
        doc="The class that validates tokens: one of Kafka's own that verify signatures, "
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator or BrokerJwtValidator.",
    )
    jwt_retriever_class = option(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        DEFAULT_JWT_RETRIEVER,
        doc="The class that gets a node's own tokens: DefaultJwtRetriever, ClientCredentialsJwtRetriever, "
        "JwtBearerJwtRetriever or FileJwtRetriever of org.apache.kafka.common.security.oauthbearer.",
    )


class OauthClientOptions(Section):
    """How a broker gets the tokens by which it logs in to other nodes."""

    scope = option(
        "sasl.oauthbearer.scope",
        STRING,
        None,
        doc="The scope to request.",
    )
    client_id = option(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        doc="The client id for the identity provider.",
    )
    client_secret = option(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        doc="The client secret for the identity provider.",
    )
    assertion_algorithm = option(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        valid=_ALGORITHM,
        doc="The signature algorithm of assertions.",
    )
    assertion_file = option(
        "sasl.oauthbearer.assertion.file",
        STRING,
        None,
        doc="A file that contains the assertion, used instead of creating one.",
    )
    assertion_template_file = option(
        "sasl.oauthbearer.assertion.template.file",
        STRING,
        None,
        doc="A template file with additional claims of assertions.",
    )
    assertion_private_key_file = option(
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        None,
        doc="The private key file that signs assertions.",
    )
    assertion_private_key_passphrase = option(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        PASSWORD,
        None,
        doc="The passphrase of the private key that signs assertions.",
    )
    assertion_claim_audience = option(
        "sasl.oauthbearer.assertion.claim.aud",
        STRING,
        None,
        doc="The audience claim of assertions.",
    )
    assertion_claim_issuer = option(
        "sasl.oauthbearer.assertion.claim.iss",
        STRING,
        None,
        doc="The issuer claim of assertions.",
    )
    assertion_claim_subject = option(
        "sasl.oauthbearer.assertion.claim.sub",
        STRING,
        None,
        doc="The subject claim of assertions.",
    )
    assertion_claim_id_included = option(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        doc="Whether assertions include a unique id (the jti claim).",
    )
    assertion_claim_expiry_seconds = option(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        valid=between(0, 86_400),
        importance=Importance.LOW,
        doc="How long an assertion is valid.",
    )
    assertion_claim_not_before_seconds = option(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        valid=between(0, 3600),
        importance=Importance.LOW,
        doc="How long before its creation an assertion becomes valid (the nbf claim).",
    )
