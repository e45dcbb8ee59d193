"""The TLS side of one listener, and of this node's connections to a listener of that name on other nodes.

Each holds the context for new connections. A context is never changed while connections use it: a renewal creates
another one. A changed context would keep its certificate of another key type, its old trusted certificates, and its
session ticket keys.
"""

from __future__ import annotations

from dataclasses import dataclass

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.tls import PeerCertificate, TlsContext, TlsFailure
from millbeck.security.audit.events import AuditKind, AuditTrail, event_of
from millbeck.security.principal import ANONYMOUS, USER_TYPE, NoPrincipal, Principal
from millbeck.security.tls.certificate import parse_certificate
from millbeck.security.tls.der import DerError
from millbeck.security.tls.material import StoreFiles, TlsMaterial, make_usable, read_material
from millbeck.security.tls.principal_mapping import NoRuleApplies, PrincipalMapping
from millbeck.server.config import SslOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTls:
    """The TLS context of a listener, with the settings and file contents it was loaded from."""

    context: TlsContext
    material: TlsMaterial
    files: StoreFiles
    options: SslOptions
    mapping: PrincipalMapping

    def is_like(self, other: LoadedTls) -> bool:
        """Whether the other context is equivalent for new connections."""
        return (
            self.material.settings == other.material.settings
            and self.options.ssl_principal_mapping_rules == other.options.ssl_principal_mapping_rules
        )


def load_listener(options: SslOptions, listener: str, environment: Environment) -> LoadedTls:
    """Load the TLS of an SSL listener's connections. Raises `InvalidConfig` naming the setting."""
    peer_certificate = PeerCertificate(options.ssl_client_auth)
    asks = peer_certificate is not PeerCertificate.NONE
    if not (options.ssl_keystore_location or options.ssl_keystore_key):
        raise InvalidConfig(
            f"ssl.keystore.location is not set, but SSL listener {listener} needs a certificate and key"
        )
    if asks and not (options.ssl_truststore_location or options.ssl_truststore_certificates):
        raise InvalidConfig("ssl.truststore.location is not set, and ssl.client.auth asks for client certificates")
    return _load(options, environment, is_server=True, peer_certificate=peer_certificate)


def load_peer(options: SslOptions, environment: Environment) -> LoadedTls:
    """Load the TLS of connections to other nodes, with this node's certificate if it has one. Raises
    `InvalidConfig`."""
    return _load(options, environment, is_server=False, peer_certificate=PeerCertificate.REQUIRED)


def _load(
    options: SslOptions, environment: Environment, *, is_server: bool, peer_certificate: PeerCertificate
) -> LoadedTls:
    files = StoreFiles(environment.files)
    material = read_material(
        options,
        files,
        is_server=is_server,
        peer_certificate=peer_certificate,
        checks_host_name=options.ssl_endpoint_identification_algorithm == "https",
    )
    return LoadedTls(
        context=make_usable(material, options, environment.network.tls_context),
        material=material,
        files=files,
        options=options,
        mapping=PrincipalMapping(options.ssl_principal_mapping_rules),
    )


class TlsStatistics:
    """Counters of one listener, read by the metrics."""

    __slots__ = ("failed", "resumed", "succeeded")

    def __init__(self) -> None:
        self.succeeded = 0
        self.resumed = 0
        """The handshakes among ``succeeded`` that resumed a session."""
        self.failed = dict.fromkeys(TlsFailure, 0)


class TlsEndpoint:
    """The TLS of a listener (``role`` "listener") or of the connections to it on other nodes (``role`` "client")."""

    def __init__(self, name: str, role: str, loaded: LoadedTls) -> None:
        self.name = name
        self.role = role
        self.loaded = loaded
        self.statistics = TlsStatistics()
        self.reloads = 0
        self.reload_failures = 0
        self.last_error = ""
        self.audit: AuditTrail | None = None

    def logged_in(self, principal: Principal, host: str) -> None:
        """Record that a client has authenticated with a certificate."""
        if self.audit is not None:
            event = event_of(AuditKind.LOGIN, host=host, listener=self.name, mechanism="TLS", principal=principal.text)
            self.audit.record(event)

    def login_failed(self, host: str, reason: str) -> None:
        """Record a failed handshake, or a certificate without a principal."""
        if self.audit is not None:
            event = event_of(AuditKind.LOGIN_FAILED, host=host, listener=self.name, mechanism="TLS", reason=reason)
            self.audit.record(event)

    def context(self) -> TlsContext:
        """The context for a new connection."""
        return self.loaded.context

    def principal_of(self, certificate: bytes | None) -> Principal:
        """The principal of a client with this verified certificate (DER). Raises `NoPrincipal`."""
        if certificate is None:
            return ANONYMOUS
        try:
            subject = parse_certificate(certificate).subject
        except DerError as error:
            raise NoPrincipal(f"the client's certificate cannot be read: {error}") from error
        try:
            return Principal(USER_TYPE, self.loaded.mapping.name_of(subject))
        except NoRuleApplies as error:
            raise NoPrincipal(
                f"no rule of ssl.principal.mapping.rules applies to the certificate of {subject}"
            ) from error
