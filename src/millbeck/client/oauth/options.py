"""Settings for getting OAUTHBEARER tokens, under Kafka's names and, where librdkafka has its own, under those.

Their meaning is that of KIP-768 and KIP-1139; `settings` evaluates them.
"""

from __future__ import annotations

from typing import Final

from millbeck.client.tls_options import ClientTlsOptions
from millbeck.kernel.options import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    PASSWORD,
    SHORT,
    STRING,
    Scope,
    at_least,
    between,
    option,
)

_CLIENT: Final = Scope.CLIENT
_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer"
DEFAULT_RETRIEVER: Final = f"{_PACKAGE}.DefaultJwtRetriever"


class ClientOauthOptions(ClientTlsOptions):
    sasl_login_callback_handler_class = option(
        "sasl.login.callback.handler.class",
        STRING,
        None,
        scope=_CLIENT,
        doc="The way this client gets tokens, as the name of Kafka's class: OAuthBearerLoginCallbackHandler of "
        "org.apache.kafka.common.security.oauthbearer, the default where sasl.oauthbearer.token.endpoint.url "
        "is set, or OAuthBearerUnsecuredLoginCallbackHandler for unsecured tokens with the claims of "
        "sasl.jaas.config.",
    )
    sasl_login_connect_timeout_ms = option(
        "sasl.login.connect.timeout.ms",
        INT,
        None,
        valid=at_least(1),
        scope=_CLIENT,
        doc="Timeout of connecting to the identity provider; default: 4000.",
    )
    sasl_login_read_timeout_ms = option(
        "sasl.login.read.timeout.ms",
        INT,
        None,
        valid=at_least(1),
        scope=_CLIENT,
        doc="Timeout of the identity provider's complete response; default: 5000.",
    )
    sasl_login_retry_backoff_ms = option(
        "sasl.login.retry.backoff.ms",
        LONG,
        100,
        valid=at_least(1),
        scope=_CLIENT,
        doc="The backoff after a failed request to the identity provider; it doubles with each failure.",
    )
    sasl_login_retry_backoff_max_ms = option(
        "sasl.login.retry.backoff.max.ms",
        LONG,
        10_000,
        valid=at_least(1),
        scope=_CLIENT,
        doc="The maximum backoff between two requests to the identity provider.",
    )
    sasl_login_refresh_window_factor = option(
        "sasl.login.refresh.window.factor",
        DOUBLE,
        0.8,
        valid=between(0.5, 1.0),
        scope=_CLIENT,
        doc="The fraction of a token's lifetime after which the next one is fetched.",
    )
    sasl_login_refresh_window_jitter = option(
        "sasl.login.refresh.window.jitter",
        DOUBLE,
        0.05,
        valid=between(0.0, 0.25),
        scope=_CLIENT,
        doc="The random jitter of the refresh time, as a fraction of the token's lifetime.",
    )
    sasl_login_refresh_min_period_seconds = option(
        "sasl.login.refresh.min.period.seconds",
        SHORT,
        60,
        valid=between(0, 900),
        scope=_CLIENT,
        doc="The minimum time between two refreshes.",
    )
    sasl_login_refresh_buffer_seconds = option(
        "sasl.login.refresh.buffer.seconds",
        SHORT,
        300,
        valid=between(0, 3600),
        scope=_CLIENT,
        doc="The next token is fetched at least this long before the current one expires.",
    )
    sasl_oauthbearer_token_endpoint_url = option(
        "sasl.oauthbearer.token.endpoint.url",
        STRING,
        None,
        scope=_CLIENT,
        doc="The source of tokens: the https URL of an identity provider's token endpoint, or the file: URL of a "
        "file with a token.",
    )
    sasl_oauthbearer_jwt_retriever_class = option(
        "sasl.oauthbearer.jwt.retriever.class",
        STRING,
        DEFAULT_RETRIEVER,
        scope=_CLIENT,
        doc="The kind of token request, as the name of Kafka's class in org.apache.kafka.common.security.oauthbearer: "
        "ClientCredentialsJwtRetriever, JwtBearerJwtRetriever, FileJwtRetriever, or DefaultJwtRetriever, "
        "which is FileJwtRetriever for file: URLs and otherwise ClientCredentialsJwtRetriever.",
    )
    sasl_oauthbearer_client_id = option(
        "sasl.oauthbearer.client.credentials.client.id",
        STRING,
        None,
        scope=_CLIENT,
        doc="The client id for the identity provider.",
    )
    sasl_oauthbearer_client_secret = option(
        "sasl.oauthbearer.client.credentials.client.secret",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The client secret for the identity provider.",
    )
    sasl_oauthbearer_scope = option(
        "sasl.oauthbearer.scope",
        STRING,
        None,
        scope=_CLIENT,
        doc="The scope to request.",
    )
    sasl_oauthbearer_header_urlencode = option(
        "sasl.oauthbearer.header.urlencode",
        BOOLEAN,
        False,
        scope=_CLIENT,
        doc="Whether the client id and secret are URL-encoded as in RFC 6749, which not every identity provider "
        "expects.",
    )
    sasl_oauthbearer_sub_claim_name = option(
        "sasl.oauthbearer.sub.claim.name",
        STRING,
        "sub",
        scope=_CLIENT,
        doc="The claim from which brokers take the principal's name.",
    )
    sasl_oauthbearer_assertion_algorithm = option(
        "sasl.oauthbearer.assertion.algorithm",
        STRING,
        "RS256",
        scope=_CLIENT,
        doc="The signature algorithm of assertions: RS256 or ES256.",
    )
    sasl_oauthbearer_assertion_file = option(
        "sasl.oauthbearer.assertion.file",
        STRING,
        None,
        scope=_CLIENT,
        doc="A file with a signed assertion.",
    )
    sasl_oauthbearer_assertion_template_file = option(
        "sasl.oauthbearer.assertion.template.file",
        STRING,
        None,
        scope=_CLIENT,
        doc="A template file of assertions: a JSON object with header and payload.",
    )
    sasl_oauthbearer_assertion_private_key_file = option(
        "sasl.oauthbearer.assertion.private.key.file",
        STRING,
        None,
        scope=_CLIENT,
        doc="The PEM file with the private key that signs assertions.",
    )
    sasl_oauthbearer_assertion_private_key_passphrase = option(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The passphrase of the private key that signs assertions.",
    )
    sasl_oauthbearer_assertion_claim_aud = option(
        "sasl.oauthbearer.assertion.claim.aud",
        STRING,
        None,
        scope=_CLIENT,
        doc="The audience claim of assertions.",
    )
    sasl_oauthbearer_assertion_claim_iss = option(
        "sasl.oauthbearer.assertion.claim.iss",
        STRING,
        None,
        scope=_CLIENT,
        doc="The issuer claim of assertions. With client credentials, setting it means that an assertion is sent "
        "instead of a secret.",
    )
    sasl_oauthbearer_assertion_claim_sub = option(
        "sasl.oauthbearer.assertion.claim.sub",
        STRING,
        None,
        scope=_CLIENT,
        doc="The subject claim of assertions.",
    )
    sasl_oauthbearer_assertion_claim_jti_include = option(
        "sasl.oauthbearer.assertion.claim.jti.include",
        BOOLEAN,
        False,
        scope=_CLIENT,
        doc="Whether each assertion has a unique id (the jti claim).",
    )
    sasl_oauthbearer_assertion_claim_exp_seconds = option(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        INT,
        300,
        valid=between(0, 86_400),
        scope=_CLIENT,
        doc="The validity period of an assertion.",
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds = option(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        INT,
        60,
        valid=between(0, 3600),
        scope=_CLIENT,
        doc="The time before its creation from which an assertion is valid (the nbf claim).",
    )
    sasl_oauthbearer_method = option(
        "sasl.oauthbearer.method",
        STRING,
        None,
        scope=_CLIENT,
        doc="librdkafka's setting for the way to get tokens; only oidc is available, which works as in Kafka.",
    )
    sasl_oauthbearer_grant_type = option(
        "sasl.oauthbearer.grant.type",
        STRING,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for the kind of request: client_credentials, or "
        "urn:ietf:params:oauth:grant-type:jwt-bearer.",
    )
    sasl_oauthbearer_rd_client_id = option(
        "sasl.oauthbearer.client.id",
        STRING,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for sasl.oauthbearer.client.credentials.client.id.",
    )
    sasl_oauthbearer_rd_client_secret = option(
        "sasl.oauthbearer.client.secret",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for sasl.oauthbearer.client.credentials.client.secret.",
    )
    sasl_oauthbearer_rd_template_file = option(
        "sasl.oauthbearer.assertion.jwt.template.file",
        STRING,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for sasl.oauthbearer.assertion.template.file.",
    )
    sasl_oauthbearer_extensions = option(
        "sasl.oauthbearer.extensions",
        STRING,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for the extension_<name> options of sasl.jaas.config: name=value pairs, separated "
        "by commas.",
    )
    https_ca_location = option(
        "https.ca.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="The trusted certificates for https, as in librdkafka: a PEM file, a PKCS #12 or a JKS store. "
        "Default: the system's, or ssl.truststore.location in sasl.jaas.config.",
    )
    https_ca_pem = option(
        "https.ca.pem",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The trusted certificates for https as PEM text, as in librdkafka.",
    )
