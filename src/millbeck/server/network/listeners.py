"""All listeners of a node: bound together, then opened, checked for timeouts, and drained at shutdown.

Connection limits are counted over all of them. The APIs of a listener depend on its group: listeners for clients and
other brokers, or controller listeners (`ListenerGroup`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from millbeck.kernel.environment import Network, SocketBuffers
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.units import INT_MAX
from millbeck.metadata.image import Endpoint
from millbeck.security.principal_builder import GuardedPrincipalBuilder
from millbeck.server.config import NodeConfig, parse_ip_overrides
from millbeck.server.config.addresses import WILDCARD_HOSTS, ListenerAddress
from millbeck.server.network.connection import ListenerAuthentication, Requests
from millbeck.server.network.listener import ConnectionLimits, Listener, ListenerContext
from millbeck.server.network.node_tls import NodeTls
from millbeck.server.network.receive import SharedBuffer
from millbeck.server.network.request_memory import ReplyMemory, RequestMemory
from millbeck.server.quotas.connections import AcceptRate, ConnectionRates
from millbeck.server.quotas.rates import WindowedRate
from millbeck.wire.messages.metadata import ApiVersion

SWEEP_SECONDS: Final = 5.0
FRAME_SECONDS_MAX: Final = 30.0
STALL_SECONDS_MAX: Final = 60.0
DRAIN_SECONDS_MAX: Final = 5.0
DRAIN_POLL_SECONDS: Final = 0.01
SECURITY_PROTOCOL_NUMBERS: Final = {"PLAINTEXT": 0, "SSL": 1, "SASL_PLAINTEXT": 2, "SASL_SSL": 3}
BEFORE_LOGIN_SHARE: Final = 16
"""The part of the memory for incomplete requests that clients may use before they have logged in."""
BUFFER_GROWTH: Final = 4
"""Factor by which a socket's buffers may outgrow their settings for long replies and requests (docs/adr/0011)."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerGroup:
    """Listeners that serve the same APIs: their addresses, their request handler, and their ApiVersions response."""

    addresses: tuple[ListenerAddress, ...]
    requests: Requests
    served: list[ApiVersion]
    is_controllers: bool = False
    authentication: Mapping[str, ListenerAuthentication] = field(default_factory=dict)
    """The authentication of listeners with SASL, by listener name."""


class Listeners:
    def __init__(
        self,
        config: NodeConfig,
        tls: NodeTls,
        *,
        network: Network,
        turn: EventBatch,
        now: Callable[[], float],
        checks_views: bool,
        principals: Callable[[str], GuardedPrincipalBuilder | None] = lambda listener: None,
        connections_possible: int = INT_MAX,
    ) -> None:
        """``principals`` makes the principal builder of a listener; it may raise `InvalidConfig`.

        ``connections_possible`` is how many connections of clients the limit of open files leaves room for.
        """
        self._config = config
        self._principals = principals
        self._network = network
        self._turn = turn
        self._now = now
        self._checks_views = checks_views
        self._tls = tls
        self._limits = ConnectionLimits(
            connections_max=0,
            connections_max_per_ip=0,
            overrides_per_ip={},
            connections_possible=connections_possible,
        )
        self.listeners: list[Listener] = []
        self.replies = ReplyMemory()
        self.apply_limits()

    async def start(self, groups: Iterable[ListenerGroup]) -> None:
        """Bind every address; requests are handled only after `open`."""
        config = self._config
        memory = RequestMemory(config.socket.queued_max_request_bytes)
        context = ListenerContext(
            network=self._network,
            turn=self._turn,
            now=self._now,
            shared_buffer=SharedBuffer(check_views=self._checks_views),
            frame_bytes_max=config.socket.socket_request_max_bytes,
            limits=self._limits,
            memory=memory,
            memory_before_login=RequestMemory(max(1, memory.limit_bytes // BEFORE_LOGIN_SHARE)),
            replies=self.replies,
            backlog=config.socket.socket_listen_backlog_size,
        )
        advertised = config.advertised()
        for group in groups:
            for address in group.addresses:
                tls = self._tls.of_listener(address.name) if address.is_encrypted else None
                listener = Listener(
                    address,
                    group.requests,
                    context,
                    tls=tls,
                    authentication=group.authentication.get(address.name),
                    buffers=SocketBuffers(
                        send_bytes=config.socket.socket_send_buffer_bytes,
                        receive_bytes=config.socket.socket_receive_buffer_bytes,
                        growth=1 if tls else BUFFER_GROWTH,
                    ),
                )
                listener.advertised = advertised.get(address.name)
                listener.served = group.served
                listener.principals = self._principals(address.name)
                listener.is_controllers = group.is_controllers
                listener.is_reserved = group.is_controllers or self._is_between_brokers(address.name)
                self.listeners.append(listener)
                self._apply_limits_of(listener)
                await listener.start()

    def open(self, names: Iterable[str]) -> None:
        """Start handling requests on these listeners, including those of connections accepted before."""
        wanted = list(names)
        for listener in self.listeners:
            if listener.address.name in wanted and not listener.is_open:
                listener.open()

    def endpoints(self, names: Iterable[str]) -> tuple[Endpoint, ...]:
        """The endpoints to register for these listeners."""
        wanted = list(names)
        endpoints = []
        for listener in self.listeners:
            if listener.address.name in wanted:
                host, port = listener.advertised or (listener.address.host, listener.port)
                if host in WILDCARD_HOSTS:
                    host = self._network.host_name()
                protocol = SECURITY_PROTOCOL_NUMBERS[listener.address.protocol]
                name = listener.address.name
                endpoints.append(Endpoint(listener=name, host=host, port=port, security_protocol=protocol))
        return tuple(endpoints)

    async def sweep(self) -> None:
        """Close connections that are idle, stalled inside a request or not reading their replies; runs until
        cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for listener in self.listeners:
                listener.close_overdue(
                    idle_max=self._config.socket.connections_max_idle_ms / 1000,
                    frame_max=FRAME_SECONDS_MAX,
                    stall_max=STALL_SECONDS_MAX,
                )

    def limit_addresses(self, rates: ConnectionRates) -> None:
        """Limit how fast addresses may connect; other nodes' connections to controllers are exempt."""
        for listener in self.listeners:
            listener.address_rates = rates if rates.is_set and not listener.is_controllers else None

    # dynamic config

    def apply_limits(self) -> None:
        socket = self._config.socket
        self._limits.connections_max = socket.max_connections
        self._limits.connections_max_per_ip = socket.max_connections_per_ip
        self._limits.overrides_per_ip = parse_ip_overrides(socket.max_connections_per_ip_overrides)
        self._limits.rate = self._accept_rate(self._limits.rate, self._config.connection_rate_max(None))
        for listener in self.listeners:
            self._apply_limits_of(listener)

    def _apply_limits_of(self, listener: Listener) -> None:
        name = listener.address.name
        listener.allowed_networks = self._config.allowed_networks(name)
        listener.connections_max = self._config.connections_max(name)
        listener.limit_rate(self._accept_rate(listener.rate, self._config.connection_rate_max(name)))

    def _accept_rate(self, rate: AcceptRate | None, limit: int | None) -> AcceptRate | None:
        """A counter with this limit, the present one if there is one: a changed limit forgives nothing."""
        if limit is None:
            return None
        if rate is None:
            options = self._config.quotas
            window_ms = options.quota_window_size_seconds * 1000
            counted = WindowedRate(samples=options.quota_window_num, window_ms=window_ms)
            rate = AcceptRate(counted, window_ms=window_ms)
        rate.limit = limit
        return rate

    def _is_between_brokers(self, name: str) -> bool:
        """Whether brokers use this listener and clients have another one."""
        return len(self._config.client_addresses()) > 1 and name == self._config.inter_broker_listener

    # shutdown

    async def drain(self, names: Iterable[str]) -> None:
        """Stop accepting on these listeners, and wait a bounded time for open requests to be answered."""
        wanted = list(names)
        ending = [listener for listener in self.listeners if listener.address.name in wanted]
        for listener in ending:
            listener.stop_accepting()
        for listener in ending:
            listener.drain()
        deadline = self._now() + DRAIN_SECONDS_MAX
        while any(listener.connections for listener in ending) and self._now() < deadline:
            await asyncio.sleep(DRAIN_POLL_SECONDS)
        for listener in ending:
            listener.abort()

    def abort(self) -> None:
        """Close every connection at once."""
        for listener in self.listeners:
            listener.stop_accepting()
            listener.abort()
