"""TLS settings of clients, under Kafka's names and, where librdkafka has its own, under those."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.options import LIST, PASSWORD, STRING, Scope, Section, distinct, one_of, option
from millbeck.kernel.tls import TLS_VERSIONS

_CLIENT: Final = Scope.CLIENT


class ClientTlsOptions(Section):
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="The trusted certificates: a PEM file, a PKCS #12 or a JKS store; default: the system's.",
    )
    ssl_truststore_password = option(
        "ssl.truststore.password",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The password of a PKCS #12 or JKS truststore.",
    )
    ssl_truststore_type = option(
        "ssl.truststore.type",
        STRING,
        None,
        scope=_CLIENT,
        doc="The format of the truststore. Accepted for compatibility: the format is detected from the content.",
    )
    ssl_truststore_certificates = option(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The trusted certificates as PEM text, instead of ssl.truststore.location.",
    )
    ssl_ca_location = option(
        "ssl.ca.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for ssl.truststore.location.",
    )
    ssl_ca_pem = option(
        "ssl.ca.pem",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for ssl.truststore.certificates.",
    )
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="This client's certificate chain and private key, for brokers that require one: a PEM file with both, a "
        "PKCS #12 or a JKS store.",
    )
    ssl_keystore_password = option(
        "ssl.keystore.password",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The password of a PKCS #12 or JKS keystore.",
    )
    ssl_keystore_type = option(
        "ssl.keystore.type",
        STRING,
        None,
        scope=_CLIENT,
        doc="The format of the keystore. Accepted for compatibility: the format is detected from the content.",
    )
    ssl_keystore_key = option(
        "ssl.keystore.key",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The private key as PEM text, instead of ssl.keystore.location.",
    )
    ssl_keystore_certificate_chain = option(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="The certificate chain of ssl.keystore.key as PEM text, this client's own certificate first.",
    )
    ssl_certificate_location = option(
        "ssl.certificate.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="PEM file with this client's certificate chain; librdkafka's option, used with ssl.key.location.",
    )
    ssl_certificate_pem = option(
        "ssl.certificate.pem",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for ssl.keystore.certificate.chain.",
    )
    ssl_key_location = option(
        "ssl.key.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="PEM file with the private key of ssl.certificate.location, if it is not in that file.",
    )
    ssl_key_pem = option(
        "ssl.key.pem",
        PASSWORD,
        None,
        scope=_CLIENT,
        doc="librdkafka's name for ssl.keystore.key.",
    )
    ssl_key_password = option(
        "ssl.key.password", PASSWORD, None, scope=_CLIENT, doc="The password of an encrypted private key."
    )
    ssl_crl_location = option(
        "ssl.crl.location",
        STRING,
        None,
        scope=_CLIENT,
        doc="PEM file with certificate revocation lists, which must include one of the issuer of the broker's "
        "certificate.",
    )
    ssl_enabled_protocols = option(
        "ssl.enabled.protocols",
        LIST,
        TLS_VERSIONS,
        valid=distinct(),
        scope=_CLIENT,
        doc="The enabled TLS versions: TLSv1.2, TLSv1.3 or both.",
    )
    ssl_cipher_suites = option(
        "ssl.cipher.suites",
        LIST,
        (),
        valid=distinct(),
        scope=_CLIENT,
        doc="The enabled cipher suites of TLS 1.2 by Java's names; empty: the TLS library's defaults. The cipher "
        "suites of TLS 1.3 cannot be chosen.",
    )
    ssl_endpoint_identification = option(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        valid=one_of("https", ""),
        scope=_CLIENT,
        doc="https: verify the broker's host name against its certificate; empty: do not.",
    )
