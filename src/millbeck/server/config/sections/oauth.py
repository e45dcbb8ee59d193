"""SASL/OAUTHBEARER. Checked and listed; it comes in a later release, and until then nothing reads these."""

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

DEFAULT_JWT_RETRIEVER: Final = "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever"
DEFAULT_JWT_VALIDATOR: Final = "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator"
_ALGORITHM: Final[Validator[str]] = Validator(
    lambda name: name.upper() in ("ES256", "RS256"), "one of ES256, RS256 in any case"
)


class OauthServerOptions(Section):
    """What a broker checks of a token."""

    token_endpoint_url = option(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        doc="Where tokens are asked for. Takes effect with OAUTHBEARER.",
    )
    jwks_endpoint_url = option(
        "sasl.oauthbearer.jwks.endpoint.url",
        STRING,
        None,
        doc="Where the keys that sign tokens are published. Takes effect with OAUTHBEARER.",
    )
    jwks_endpoint_refresh_ms = option(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        LONG,
        1 * HOUR_MS,
        importance=Importance.LOW,
        doc="How often those keys are read again. Takes effect with OAUTHBEARER.",
    )
    jwks_endpoint_retry_backoff_ms = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        LONG,
        100,
        importance=Importance.LOW,
        doc="The first rest after they could not be read. Takes effect with OAUTHBEARER.",
    )
    jwks_endpoint_retry_backoff_ms_max = option(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        LONG,
        10_000,
        importance=Importance.LOW,
        doc="The longest rest after they could not be read. Takes effect with OAUTHBEARER.",
    )
    clock_skew_seconds = option(
        "sasl.oauthbearer.clock.skew.seconds",
        INT,
        30,
        importance=Importance.LOW,
        doc="How far clocks may be apart when a token's times are checked. Takes effect with OAUTHBEARER.",
    )
    expected_audience = option(
        "sasl.oauthbearer.expected.audience",
        LIST,
        (),
        valid=distinct(),
        importance=Importance.HIGH,
        doc="Audiences of which a token must name one. Takes effect with OAUTHBEARER.",
    )
    expected_issuer = option(
        "sasl.oauthbearer.expected.issuer",
        STRING,
        None,
        importance=Importance.HIGH,
        doc="Who must have issued a token. Takes effect with OAUTHBEARER.",
    )
    scope_claim_name = option(
        "sasl.oauthbearer.scope.claim.name",
        STRING,
        "scope",
        importance=Importance.LOW,
        doc="Which claim holds a token's scope. Takes effect with OAUTHBEARER.",
    )
    sub_claim_name = option(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        importance=Importance.LOW,
        doc="Which claim holds a token's subject. Takes effect with OAUTHBEARER.",
    )
    jwt_validator_class = option(
        "sasl.oauthbearer.jwt.validator.class",
        CLASS,
        DEFAULT_JWT_VALIDATOR,
        doc="A class that checks tokens. Takes effect with OAUTHBEARER.",
    )
    jwt_retriever_class = option(
        "sasl.oauthbearer.jwt.retriever.class",
        CLASS,
        DEFAULT_JWT_RETRIEVER,
        doc="A class that gets tokens. Takes effect with OAUTHBEARER.",
    )


class OauthClientOptions(Section):
    """How a broker asks for a token of its own."""

    scope = option(
        "sasl.oauthbearer.scope",
        STRING,
        None,
        doc="The scope asked for. Takes effect with OAUTHBEARER between brokers.",
    )
    client_id = option(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        doc="The client id shown to the identity provider. Takes effect with OAUTHBEARER between brokers.",
    )
    client_secret = option(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        doc="The secret shown with it. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_algorithm = option(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        valid=_ALGORITHM,
        doc="How an assertion is signed. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_file = option(
        "sasl.oauthbearer.assertion.file",
        STRING,
        None,
        doc="A file that holds an assertion made elsewhere. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_template_file = option(
        "sasl.oauthbearer.assertion.template.file",
        STRING,
        None,
        doc="A file with further claims of an assertion. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_private_key_file = option(
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        None,
        doc="The key that signs assertions. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_private_key_passphrase = option(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        PASSWORD,
        None,
        doc="That key's password. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_claim_audience = option(
        "sasl.oauthbearer.assertion.claim.aud",
        STRING,
        None,
        doc="The audience an assertion names. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_claim_issuer = option(
        "sasl.oauthbearer.assertion.claim.iss",
        STRING,
        None,
        doc="The issuer an assertion names. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_claim_subject = option(
        "sasl.oauthbearer.assertion.claim.sub",
        STRING,
        None,
        doc="The subject an assertion names. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_claim_id_included = option(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        doc="Whether an assertion has an id of its own. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_claim_expiry_seconds = option(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        valid=between(0, 86_400),
        importance=Importance.LOW,
        doc="How long an assertion is good. Takes effect with OAUTHBEARER between brokers.",
    )
    assertion_claim_not_before_seconds = option(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        valid=between(0, 3600),
        importance=Importance.LOW,
        doc="How long before now an assertion begins to be good. Takes effect with OAUTHBEARER between brokers.",
    )
