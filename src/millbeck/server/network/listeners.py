"""All listeners of a node: bound together, opened together, swept, and drained when the node stops.

Connections are counted over all of them. What a listener serves depends on whom it is for: clients and other brokers,
or controllers and those who look for one (`Audience`).
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from millbeck.kernel.environment import Network, SocketBuffers
from millbeck.kernel.errors import InvalidConfig
from millbeck.metadata.image import Endpoint
from millbeck.replication.turn import Turn
from millbeck.server.config import NodeConfig, parse_ip_overrides
from millbeck.server.config.addresses import WILDCARD_HOSTS
from millbeck.server.connection import Requests
from millbeck.server.listener import ConnectionLimits, Listener, ListenerAddress
from millbeck.server.receive import SharedBuffer
from millbeck.server.request_memory import ReplyMemory, RequestMemory
from millbeck.server.tls import renew_certificate, server_context
from millbeck.wire.messages.api_versions import ApiVersion

SWEEP_SECONDS: Final = 5.0
FRAME_SECONDS_MAX: Final = 30.0
STALL_SECONDS_MAX: Final = 60.0
DRAIN_SECONDS_MAX: Final = 5.0
DRAIN_POLL_SECONDS: Final = 0.01
SECURITY_PROTOCOL_NUMBERS: Final = {"PLAINTEXT": 0, "SSL": 1}
BUFFER_GROWTH: Final = 4
"""How much larger than its settings say a socket's buffers become for long replies and requests (docs/adr/0011)."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Whom a listener is for: the addresses, who handles the requests, and what ApiVersions says of it."""

    addresses: tuple[ListenerAddress, ...]
    requests: Requests
    served: list[ApiVersion]
    is_controllers: bool = False


class Listening:
    def __init__(
        self,
        config: NodeConfig,
        *,
        network: Network,
        turn: Turn,
        now: Callable[[], float],
        checks_views: bool,
    ) -> None:
        self._config = config
        self._network = network
        self._turn = turn
        self._now = now
        self._checks_views = checks_views
        self._tls: dict[str, ssl.SSLContext] = {}
        self._limits = ConnectionLimits(connections_max=0, connections_max_per_ip=0, overrides_per_ip={})
        self.listeners: list[Listener] = []
        self.replies = ReplyMemory()
        self.apply_limits()

    async def start(self, audiences: Iterable[Audience]) -> None:
        """Bind every address; nobody is answered before `open`."""
        config = self._config
        shared = SharedBuffer(check_views=self._checks_views)
        per_ip: dict[str, int] = {}
        memory = RequestMemory(config.socket.queued_max_request_bytes)
        advertised = config.advertised()
        for audience in audiences:
            for address in audience.addresses:
                tls = self._tls_of(address)
                listener = Listener(
                    address,
                    network=self._network,
                    turn=self._turn,
                    requests=audience.requests,
                    now=self._now,
                    shared_buffer=shared,
                    frame_bytes_max=config.socket.socket_request_max_bytes,
                    limits=self._limits,
                    per_ip=per_ip,
                    memory=memory,
                    replies=self.replies,
                    tls=tls,
                    buffers=SocketBuffers(
                        send_bytes=config.socket.socket_send_buffer_bytes,
                        receive_bytes=config.socket.socket_receive_buffer_bytes,
                        growth=1 if tls else BUFFER_GROWTH,
                    ),
                    backlog=config.socket.socket_listen_backlog_size,
                )
                listener.advertised = advertised.get(address.name)
                listener.served = audience.served
                listener.is_controllers = audience.is_controllers
                self.listeners.append(listener)
                await listener.start()

    def open(self, names: Iterable[str]) -> None:
        """Take requests on the listeners of these names, those of connections that came early too."""
        wanted = list(names)
        for listener in self.listeners:
            if listener.address.name in wanted and not listener.is_open:
                listener.open()

    def endpoints(self, names: Iterable[str]) -> tuple[Endpoint, ...]:
        """Where others are told to find the listeners of these names."""
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
        """Close what has been idle, half sent or not taken for too long, for ever."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            for listener in self.listeners:
                listener.close_overdue(
                    idle_max=self._config.socket.connections_max_idle_ms / 1000,
                    frame_max=FRAME_SECONDS_MAX,
                    stall_max=STALL_SECONDS_MAX,
                )

    # changed while the node runs

    def apply_limits(self) -> None:
        socket = self._config.socket
        self._limits.connections_max = socket.max_connections
        self._limits.connections_max_per_ip = socket.max_connections_per_ip
        self._limits.overrides_per_ip = parse_ip_overrides(socket.max_connections_per_ip_overrides)

    def renew_certificates(self) -> None:
        for name, context in self._tls.items():
            try:
                renew_certificate(context, self._config.ssl(name), name)
            except InvalidConfig as error:
                log.error("listener %s keeps the certificate it has: %s", name, error.message)

    def _tls_of(self, address: ListenerAddress) -> ssl.SSLContext | None:
        if address.protocol != "SSL":
            return None
        return self._tls.setdefault(address.name, server_context(self._config.ssl(address.name), address.name))

    # stopping

    async def drain(self, names: Iterable[str]) -> None:
        """Accept nothing more on the listeners of these names, and let what is open be answered, for a while."""
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
        """End every connection at once."""
        for listener in self.listeners:
            listener.stop_accepting()
            listener.abort()
