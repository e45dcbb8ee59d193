"""The TLS context of a client's connections, made from its settings; librdkafka's setting names are converted to
Kafka's."""

from __future__ import annotations

from millbeck.client.tls_options import ClientTlsOptions
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.options import Secret
from millbeck.kernel.tls import TlsContext, TlsSource
from millbeck.security.tls.material import StoreFiles, make_usable, read_material


def client_tls(config: ClientTlsOptions, environment: Environment) -> TlsSource:
    """The context for new connections of this client."""
    tls = client_context(config, environment)
    return lambda: tls


def client_context(config: ClientTlsOptions, environment: Environment) -> TlsContext:
    """The context for ``security.protocol=SSL``; raises `InvalidConfig` naming the setting."""
    files = StoreFiles(environment.files)
    options = _by_kafkas_names(config, files)
    material = read_material(
        options, files, is_server=False, checks_host_name=options.ssl_endpoint_identification == "https"
    )
    return make_usable(material, options, environment.network.tls_context)


def _by_kafkas_names(config: ClientTlsOptions, files: StoreFiles) -> ClientTlsOptions:
    key = config.ssl_keystore_key or config.ssl_key_pem
    chain = config.ssl_keystore_certificate_chain or config.ssl_certificate_pem
    if config.ssl_certificate_location is not None and config.ssl_keystore_location is None:
        location = config.ssl_certificate_location
        chain = _text_of(files.read(location, "ssl.certificate.location"))
        if key is None:
            key_location = config.ssl_key_location
            key = _text_of(files.read(key_location, "ssl.key.location")) if key_location else chain
    elif config.ssl_key_location is not None:
        raise InvalidConfig("ssl.key.location is set, but not ssl.certificate.location")
    return config.replace(
        ssl_keystore_key=key,
        ssl_keystore_certificate_chain=chain,
        ssl_truststore_location=config.ssl_truststore_location or config.ssl_ca_location,
        ssl_truststore_certificates=config.ssl_truststore_certificates or config.ssl_ca_pem,
    )


def _text_of(data: bytes) -> Secret:
    return Secret(data.decode("ascii", "replace"))
