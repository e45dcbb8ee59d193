"""TLS for listeners, from PEM files under Kafka's names."""

from __future__ import annotations

import ssl

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import SslOptions


def server_context(options: SslOptions, listener: str) -> ssl.SSLContext:
    """The context of an SSL listener; raises `InvalidConfig` that names the setting."""
    if not options.ssl_keystore_location:
        raise InvalidConfig(f"ssl.keystore.location is not set, and listener {listener} needs a certificate and key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Without a password OpenSSL would ask for one on the terminal when it meets an encrypted key.
    password = "" if options.ssl_key_password is None else options.ssl_key_password.reveal()
    try:
        context.load_cert_chain(options.ssl_keystore_location, password=password)
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfig(f"ssl.keystore.location: {options.ssl_keystore_location} is not usable: {error}") from error
    if options.ssl_client_auth == "none":
        return context
    if not options.ssl_truststore_location:
        raise InvalidConfig("ssl.truststore.location is not set, and ssl.client.auth asks for client certificates")
    try:
        context.load_verify_locations(options.ssl_truststore_location)
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfig(
            f"ssl.truststore.location: {options.ssl_truststore_location} is not usable: {error}"
        ) from error
    context.verify_mode = ssl.CERT_REQUIRED if options.ssl_client_auth == "required" else ssl.CERT_OPTIONAL
    return context
