"""TLS for listeners, from PEM files under Kafka's names."""

from __future__ import annotations

import ssl
from typing import Final

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import SslOptions

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def server_context(options: SslOptions, listener: str) -> ssl.SSLContext:
    """The context of an SSL listener; raises `InvalidConfig` that names the setting."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    versions = [_VERSIONS[name] for name in options.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    renew_certificate(context, options, listener)
    if options.ssl_client_auth != "none":
        _trust(context, options)
        context.verify_mode = ssl.CERT_REQUIRED if options.ssl_client_auth == "required" else ssl.CERT_OPTIONAL
    return context


def peer_context(options: SslOptions) -> ssl.SSLContext:
    """The context for connections to other nodes' SSL listeners, with this node's certificate where it has one."""
    context = ssl.create_default_context()
    versions = [_VERSIONS[name] for name in options.ssl_enabled_protocols]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    context.check_hostname = options.ssl_endpoint_identification_algorithm == "https"
    if options.ssl_truststore_certificates or options.ssl_truststore_location:
        _trust(context, options)
    if options.ssl_keystore_location:
        renew_certificate(context, options, "of the other nodes")
    return context


def renew_certificate(context: ssl.SSLContext, options: SslOptions, listener: str) -> None:
    """Read certificate and key anew; new connections of a listener that is open get them too."""
    if not options.ssl_keystore_location:
        raise InvalidConfig(f"ssl.keystore.location is not set, and listener {listener} needs a certificate and key")
    # Without a password OpenSSL would ask for one on the terminal when it meets an encrypted key.
    password = "" if options.ssl_key_password is None else options.ssl_key_password.reveal()
    try:
        context.load_cert_chain(options.ssl_keystore_location, password=password)
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfig(f"ssl.keystore.location: {options.ssl_keystore_location} is not usable: {error}") from error


def _trust(context: ssl.SSLContext, options: SslOptions) -> None:
    certificates = options.ssl_truststore_certificates
    location = options.ssl_truststore_location
    if not certificates and not location:
        raise InvalidConfig("ssl.truststore.location is not set, and ssl.client.auth asks for client certificates")
    try:
        if certificates:
            context.load_verify_locations(cadata=certificates.reveal())
        else:
            context.load_verify_locations(location)
    except (OSError, ssl.SSLError) as error:
        setting = "ssl.truststore.certificates" if certificates else f"ssl.truststore.location: {location}"
        raise InvalidConfig(f"{setting} is not usable: {error}") from error
