"""This node's own connections to other nodes: TLS, and the credentials by which it logs in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from millbeck.client.errors import ConnectFailed
from millbeck.kernel.errors import IllegalSaslState, InvalidConfig, SaslAuthenticationFailed, UnsupportedSaslMechanism
from millbeck.kernel.tls import TlsSource
from millbeck.security.principal import ANONYMOUS, USER_TYPE, Principal

if TYPE_CHECKING:
    from millbeck.client.addresses import Address
    from millbeck.client.connection import Connection, ConnectionSettings
    from millbeck.client.sasl import SaslCredentials
    from millbeck.kernel.environment import Environment, Network
    from millbeck.server.config import NodeConfig
    from millbeck.server.config.listener_sasl import KerberosSettings
    from millbeck.server.network.node_tls import NodeTls


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSecurity:
    """TLS and credentials for connections to one listener of other nodes."""

    tls: TlsSource | None = None
    sasl: SaslCredentials | None = None

    @property
    def principal(self) -> Principal:
        """The principal of this node on that listener, if it is known; with TLS alone it comes from the certificate,
        with OAUTHBEARER from the first token."""
        subject = None if self.sasl is None else self.sasl.subject()
        return ANONYMOUS if subject is None else Principal(USER_TYPE, subject)


NO_SECURITY = PeerSecurity()


class LoginRefused(ConnectFailed):
    """Another node refused the login of this node. It is retried, because either node may be restarted with other
    credentials."""


async def connect_to_peer(network: Network, address: Address, settings: ConnectionSettings) -> Connection:
    """As `Connection.open`, but a failed login of this node raises `LoginRefused`, so that it is not taken for a failed
    login of a client."""
    # Imported late: a single-node cluster never gets here and starts faster without it.
    from millbeck.client.connection import Connection

    try:
        return await Connection.open(network, address, settings)
    except (SaslAuthenticationFailed, UnsupportedSaslMechanism, IllegalSaslState) as error:
        raise LoginRefused(error.message) from error


class NodePeers:
    """The security of connections to other nodes, created on first use: a single node has no such connections and needs
    no credentials for them."""

    def __init__(self, environment: Environment, config: NodeConfig, tls: NodeTls) -> None:
        self._environment = environment
        self._config = config
        self._tls = tls

    @cached_property
    def brokers(self) -> PeerSecurity:
        """TLS and credentials for the inter-broker listener. Raises `InvalidConfig`."""
        config = self._config
        return self._security(*config.brokers_protocol(), config.sasl_options.mechanism_inter_broker_protocol)

    @cached_property
    def controllers(self) -> PeerSecurity:
        """TLS and credentials for controller listeners. Raises `InvalidConfig`."""
        config = self._config
        return self._security(*config.controllers_protocol(), config.sasl_options.mechanism_controller_protocol)

    def _security(self, listener: str, protocol: str, mechanism: str) -> PeerSecurity:
        tls = self._tls.of_peers(listener) if protocol.endswith("SSL") else None
        if not protocol.startswith("SASL"):
            return PeerSecurity(tls=tls)
        # Imported late: a node without SASL starts faster without it.
        from millbeck.client.sasl import jaas_credentials, kerberos_credentials, oauth_credentials

        settings = self._config.peer_sasl(listener, mechanism)
        if settings.tokens is not None:
            return PeerSecurity(tls=tls, sasl=oauth_credentials(self._environment, settings.tokens))
        if settings.kerberos is not None:
            kerberos = settings.kerberos
            credentials = kerberos_credentials(
                self._environment,
                kerberos.login,
                kerberos.service_name,
                settings=settings.jaas_setting,
                subject=self._short_name(kerberos),
            )
            return PeerSecurity(tls=tls, sasl=credentials)
        assert settings.jaas is not None
        credentials = jaas_credentials(self._environment, mechanism, settings.jaas, settings.jaas_setting)
        return PeerSecurity(tls=tls, sasl=credentials)

    def _short_name(self, settings: KerberosSettings) -> str:
        """The name of this node's own principal on other nodes, if their rules are the same."""
        from millbeck.security.kerberos_names import KerberosNames, NoKerberosRule

        kerberos = self._environment.kerberos
        realm = "" if kerberos is None else kerberos.default_realm()
        try:
            return KerberosNames(settings.rules, realm).short_name(settings.login.principal)
        except NoKerberosRule as error:
            raise InvalidConfig(f"sasl.kerberos.principal.to.local.rules: {error}") from error
