"""The HTTP server of an instance: its settings, its TLS, and the certificate of each client."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, Final, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from millbeck.client.tls_options import ClientTlsOptions
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.tls import PeerCertificate
from millbeck.registry.rest.authentication import CERTIFICATE_KEY
from millbeck.registry.rest.config import RegistryConfig
from millbeck.security.tls.material import StoreFiles, make_usable, read_material

if TYPE_CHECKING:
    from millbeck.registry.rest.app import RegistryApp

_CONNECTIONS_MAX: Final = 1000


class _Protocol(HttpToolsProtocol):
    """Adds the client's certificate to the scope of each request."""

    def on_message_begin(self) -> None:
        super().on_message_begin()
        tls = self.transport.get_extra_info("ssl_object")
        certificate = None if tls is None else tls.getpeercert(binary_form=True)
        if certificate:
            cast("dict[str, Any]", self.scope)[CERTIFICATE_KEY] = certificate


def http_server(
    environment: Environment, app: RegistryApp, config: RegistryConfig, tls: ClientTlsOptions, socket_number: int | None
) -> uvicorn.Server:
    """The server, which does not listen yet. Raises `InvalidConfig`."""
    host, port = config.address
    options = uvicorn.Config(
        app,
        host=host or "0.0.0.0",
        port=port,
        fd=socket_number,
        http=_Protocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=_CONNECTIONS_MAX,
    )
    options.load()
    if config.scheme == "https":
        options.ssl = server_tls(environment, config, tls)
    return uvicorn.Server(options)


def server_tls(environment: Environment, config: RegistryConfig, tls: ClientTlsOptions) -> ssl.SSLContext:
    """The TLS context of the listener; raises `InvalidConfig` naming the setting."""
    wanted = PeerCertificate[config.ssl_client_authentication]
    material = read_material(tls, StoreFiles(environment.files), is_server=True, peer_certificate=wanted)
    if material.own is None:
        raise InvalidConfig(
            f"{config.listeners[0]} needs a certificate: set ssl.keystore.location (millbeck cert makes certificates)"
        )
    return make_usable(material, tls, environment.network.tls_context).context


def peer_tls(environment: Environment, tls: ClientTlsOptions) -> ssl.SSLContext:
    """The TLS context of connections to other instances; raises `InvalidConfig` naming the setting."""
    checks_host_name = tls.ssl_endpoint_identification == "https"
    material = read_material(tls, StoreFiles(environment.files), is_server=False, checks_host_name=checks_host_name)
    return make_usable(material, tls, environment.network.tls_context).context
