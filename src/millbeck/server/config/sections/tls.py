"""TLS on listeners. Each option may also be set for one listener alone, as ``listener.name.<name>.<option>``."""

from __future__ import annotations

from typing import Final

from millbeck.kernel.options import (
    BOOLEAN,
    CLASS,
    LIST,
    PASSWORD,
    STRING,
    Importance,
    Section,
    Update,
    distinct,
    one_of,
    option,
)

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


class SslOptions(Section):
    ssl_keystore_location = option(
        "ssl.keystore.location",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="PEM file with the private key and the certificate chain of an SSL listener.",
    )
    ssl_keystore_type = option(
        "ssl.keystore.type",
        STRING,
        "JKS",
        update=Update.PER_BROKER,
        doc="The format of the key store. PEM is the one that is read, whether or not it is named here; any other "
        "must not be asked for.",
    )
    ssl_keystore_password = option(
        "ssl.keystore.password",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="Password of a Java key store. A PEM file has none of its own: its key's is ssl.key.password.",
    )
    ssl_key_password = option(
        "ssl.key.password",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="Password of the private key, if it has one.",
    )
    ssl_keystore_key = option(
        "ssl.keystore.key",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The private key itself as PEM text. Not available in this release: name a file in ssl.keystore.location.",
    )
    ssl_keystore_certificate_chain = option(
        "ssl.keystore.certificate.chain",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The certificate chain itself as PEM text. Not available in this release: name a file in "
        "ssl.keystore.location.",
    )
    ssl_truststore_location = option(
        "ssl.truststore.location",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="PEM file with the certificates that client certificates are checked against.",
    )
    ssl_truststore_type = option(
        "ssl.truststore.type",
        STRING,
        "JKS",
        update=Update.PER_BROKER,
        doc="The format of the trust store. PEM is the one that is read, as with ssl.keystore.type.",
    )
    ssl_truststore_password = option(
        "ssl.truststore.password",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="Password of a Java trust store; a PEM file has none.",
    )
    ssl_truststore_certificates = option(
        "ssl.truststore.certificates",
        PASSWORD,
        None,
        update=Update.PER_BROKER,
        doc="The trusted certificates themselves as PEM text, in place of ssl.truststore.location.",
    )
    ssl_client_auth = option(
        "ssl.client.auth",
        STRING,
        "none",
        valid=one_of("required", "requested", "none"),
        update=Update.PER_BROKER,
        doc="Whether clients of an SSL listener must present a certificate, may, or are not asked.",
    )
    ssl_protocol = option(
        "ssl.protocol",
        STRING,
        "TLSv1.3",
        update=Update.PER_BROKER,
        doc="Accepted for compatibility: which versions are spoken is ssl.enabled.protocols' to say.",
    )
    ssl_enabled_protocols = option(
        "ssl.enabled.protocols",
        LIST,
        TLS_VERSIONS,
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="The TLS versions that are spoken: TLSv1.2, TLSv1.3 or both.",
    )
    ssl_cipher_suites = option(
        "ssl.cipher.suites",
        LIST,
        (),
        valid=distinct(),
        update=Update.PER_BROKER,
        doc="The cipher suites that may be used. Not available in this release: it must be empty, which leaves the "
        "choice to the system's TLS library.",
    )
    ssl_endpoint_identification_algorithm = option(
        "ssl.endpoint.identification.algorithm",
        STRING,
        "https",
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="How a broker checks the name of a server it connects to. Idle on one node.",
    )
    ssl_principal_mapping_rules = option(
        "ssl.principal.mapping.rules",
        STRING,
        "DEFAULT",
        importance=Importance.LOW,
        doc="How a certificate's distinguished name becomes a principal. Idle until there is an authorizer to ask "
        "for one.",
    )
    ssl_allow_dn_changes = option(
        "ssl.allow.dn.changes",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a renewed certificate may have another distinguished name. Accepted for compatibility: names are "
        "not compared.",
    )
    ssl_allow_san_changes = option(
        "ssl.allow.san.changes",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a renewed certificate may lose alternative names. Accepted for compatibility: names are not "
        "compared.",
    )
    ssl_engine_factory_class = option(
        "ssl.engine.factory.class",
        CLASS,
        None,
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="A Java class that makes TLS engines. There is nothing in its place here: it must not be set.",
    )
    ssl_provider = option(
        "ssl.provider",
        STRING,
        None,
        update=Update.PER_BROKER,
        doc="A Java security provider. Accepted for compatibility: the system's TLS library is used.",
    )
    ssl_keymanager_algorithm = option(
        "ssl.keymanager.algorithm",
        STRING,
        "SunX509",
        update=Update.PER_BROKER,
        doc="Belongs to Java's key managers. Accepted for compatibility.",
    )
    ssl_trustmanager_algorithm = option(
        "ssl.trustmanager.algorithm",
        STRING,
        "PKIX",
        update=Update.PER_BROKER,
        doc="Belongs to Java's trust managers. Accepted for compatibility.",
    )
    ssl_secure_random_implementation = option(
        "ssl.secure.random.implementation",
        STRING,
        None,
        update=Update.PER_BROKER,
        importance=Importance.LOW,
        doc="Belongs to Java's random numbers. Accepted for compatibility: the system's are used.",
    )
