"""TLS towards brokers, from PEM files under Kafka's or librdkafka's names."""

from __future__ import annotations

import ssl

from millbeck.client.config import ClientConfig
from millbeck.kernel.errors import InvalidConfig


def client_context(config: ClientConfig) -> ssl.SSLContext:
    """The context for ``security.protocol=SSL``; raises `InvalidConfig` that names the setting."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.check_hostname = config.ssl_endpoint_identification == "https"
    _load_trust(context, config)
    _load_own_certificate(context, config)
    return context


def _load_trust(context: ssl.SSLContext, config: ClientConfig) -> None:
    for declared, location in (
        (ClientConfig.ssl_truststore_location, config.ssl_truststore_location),
        (ClientConfig.ssl_ca_location, config.ssl_ca_location),
    ):
        if location is None:
            continue
        try:
            context.load_verify_locations(location)
        except (OSError, ssl.SSLError) as error:
            raise InvalidConfig(f"{declared.name}: {location} is not usable: {error}") from error


def _load_own_certificate(context: ssl.SSLContext, config: ClientConfig) -> None:
    certificate = config.ssl_keystore_location or config.ssl_certificate_location
    if certificate is None:
        if config.ssl_key_location is not None:
            raise InvalidConfig(
                "ssl.key.location is set, but neither ssl.certificate.location nor ssl.keystore.location"
            )
        return
    password = None if config.ssl_key_password is None else config.ssl_key_password.reveal()
    try:
        # Without a password given, an encrypted key must fail and not ask at the terminal.
        context.load_cert_chain(certificate, config.ssl_key_location, password=password or "")
    except (OSError, ssl.SSLError) as error:
        raise InvalidConfig(f"the client's certificate {certificate} is not usable: {error}") from error
