"""TLS options of listeners. Each may also be set for one listener only, as ``listener.name.<name>.<option>``."""

from __future__ import annotations

from millbeck.kernel.options import (
    BOOLEAN,
    CLASS,
    LIST,
    LONG,
    PASSWORD,
    STRING,
    Importance,
    Section,
    Update,
    at_least,
    distinct,
    one_of,
    option,
)
from millbeck.kernel.tls import TLS_VERSIONS


class SslOptions(Section):
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="The private key and certificate chain of an SSL listener, and of this node when it connects to others: a "
        "PEM file with both, a PKCS #12 or a JKS store. The format is detected from the content. The file is watched "
        "(millbeck.ssl.reload.interval.ms).",
    )
    ssl_keystore_type = option(
        "ssl.keystore.type",
        STRING,
        "JKS",
        update=Update.PER_BROKER,
        doc="The format of the keystore: PEM, PKCS12 or JKS. Accepted for compatibility: the format is detected "
        "from the content.",
    )
    ssl_keystore_password = option(
        "ssl.keystore.password",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The password of a PKCS #12 or JKS store.",
    )
    ssl_key_password = option(
        "ssl.key.password",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="Password of the private key, if it differs from that of the keystore.",
    )
    ssl_keystore_key = option(
        "ssl.keystore.key",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The private key as PEM text, instead of ssl.keystore.location.",
    )
    ssl_keystore_certificate_chain = option(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The certificate chain of ssl.keystore.key as PEM text, the node's own certificate first.",
    )
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="The trusted certificates, which those of clients and of other nodes are verified against: a PEM file, a "
        "PKCS #12 or a JKS store. The file is watched.",
    )
    ssl_truststore_type = option(
        "ssl.truststore.type",
        STRING,
        "JKS",
        update=Update.PER_BROKER,
        doc="The format of the truststore. Accepted for compatibility, as ssl.keystore.type.",
    )
    ssl_truststore_password = option(
        "ssl.truststore.password",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The password of a PKCS #12 or JKS store; without one the integrity of a JKS store is not checked.",
    )
    ssl_truststore_certificates = option(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The trusted certificates as PEM text, instead of ssl.truststore.location.",
    )
    ssl_crl_location = option(
        "millbeck.ssl.crl.location",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="PEM file with certificate revocation lists (CRLs). The certificate of a client or node is rejected if the "
        "file has no CRL of its issuer, or if that CRL lists it; intermediate certificates are not checked. Changes of "
        "the file are picked up at millbeck.ssl.reload.interval.ms.",
    )
    ssl_client_auth = option(
        "ssl.client.auth",
        STRING,
        "none",
        valid=one_of("required", "requested", "none"),
        update=Update.PER_BROKER,
        doc="Client authentication on SSL listeners: required, requested (a certificate is optional), or none.",
    )
    ssl_protocol = option(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        update=Update.PER_BROKER,
        doc="The TLS protocol of the SSL context. Accepted for compatibility: ssl.enabled.protocols sets the versions.",
    )
    ssl_enabled_protocols = option(
        "ssl.enabled.protocols",
        LIST,
        TLS_VERSIONS,
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="The enabled TLS versions: TLSv1.2, TLSv1.3 or both.",
    )
    ssl_cipher_suites = option(
        "ssl.cipher.suites",
        LIST,
        (),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="The enabled cipher suites of TLS 1.2 by Java's names, such as TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; "
        "empty: the TLS library's defaults. The cipher suites of TLS 1.3 cannot be chosen: all are enabled, and "
        "naming one is an error.",
    )
    ssl_endpoint_identification_algorithm = option(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="How this node verifies the host name of a node it connects to: https, or empty for no verification.",
    )
    ssl_principal_mapping_rules = option(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="Rules that map the distinguished name of a client's certificate to the name of its principal: DEFAULT, or "
        "RULE:pattern/replacement/[L|U]; the first that matches decides.",
    )
    ssl_allow_dn_changes = option(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a renewed certificate may have another distinguished name.",
    )
    ssl_allow_san_changes = option(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a renewed certificate may lack alternative names of the one before.",
    )
    ssl_engine_factory_class = option(
        "ssl.engine.factory.class",
        CLASS,
        None,
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="A Java class that creates TLS engines. Not available: it must not be set.",
    )
    ssl_provider = option(
        "ssl.provider",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="The Java security provider. Accepted for compatibility: the system's TLS library is used.",
    )
    ssl_keymanager_algorithm = option(
        "ssl.keymanager.algorithm",
        STRING,
        "SunX509",
        update=Update.PER_BROKER,
        doc="The algorithm of Java's key managers. Accepted for compatibility: not used.",
    )
    ssl_trustmanager_algorithm = option(
        "ssl.trustmanager.algorithm",
        STRING,
        "PKIX",
        update=Update.PER_BROKER,
        doc="The algorithm of Java's trust managers. Accepted for compatibility: not used.",
    )
    ssl_secure_random_implementation = option(
        "ssl.secure.random.implementation",
        STRING,
        None,
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="The algorithm of Java's secure random numbers. Accepted for compatibility: the system's generator is "
        "used.",
    )


class TlsReloadOptions(Section):
    interval_ms = option(
        "millbeck.ssl.reload.interval.ms",
        LONG,
        10_000,
        valid=at_least(100),
        importance=Importance.LOW,
        doc="The interval between checks whether the files of keys, certificates and revocation lists have changed.",
    )
