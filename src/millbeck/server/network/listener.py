"""A listener: its address, its connection limits, and the state its connections share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from millbeck.kernel.environment import SYSTEM_BUFFERS, BoundListener, Network, SocketBuffers
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.units import INT_MAX
from millbeck.security.hosts import Networks
from millbeck.security.principal_builder import GuardedPrincipalBuilder
from millbeck.server.config.addresses import ListenerAddress
from millbeck.server.network.connection import Connection, ListenerAuthentication, Requests
from millbeck.server.network.connection_protocol import ConnectionProtocol
from millbeck.server.network.receive import SharedBuffer
from millbeck.server.network.request_memory import ReplyMemory, RequestMemory
from millbeck.server.quotas.connections import AcceptRate, ConnectionRates
from millbeck.wire.messages.metadata import ApiVersion

if TYPE_CHECKING:
    from millbeck.server.network.tls import TlsEndpoint

REFUSALS_LOGGED_EVERY_S: Final = 10.0
FULL_PAUSE_MS: Final = 100
"""The pause after a connection for which there was no descriptor left: each that is accepted has one until it is
closed."""

log = logging.getLogger(__name__)


class ByteCount:
    """A plain counter on the hot path, read by the metrics."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


@dataclass(slots=True, kw_only=True)
class ConnectionLimits:
    """Connection limits and count over all listeners of the node; dynamic configs change them."""

    connections_max: int
    connections_max_per_ip: int
    overrides_per_ip: dict[str, int]
    connections_possible: int = INT_MAX
    """How many there can be without taking the descriptors that logs and connections of nodes need."""
    connections: int = 0
    rate: AcceptRate | None = None
    """Connections accepted by all listeners that clients use; None without a limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerContext:
    """The context that all listeners of a node share."""

    network: Network
    turn: EventBatch
    now: Callable[[], float]
    shared_buffer: SharedBuffer
    frame_bytes_max: int
    limits: ConnectionLimits
    per_ip: dict[str, int] = field(default_factory=dict)
    """The number of connections by peer address."""
    memory: RequestMemory = field(default_factory=RequestMemory)
    memory_before_login: RequestMemory = field(default_factory=RequestMemory)
    """That of clients that have to log in, so that they keep nobody who has from sending requests."""
    replies: ReplyMemory = field(default_factory=ReplyMemory)
    backlog: int = 50


class Listener:
    def __init__(
        self,
        address: ListenerAddress,
        requests: Requests,
        context: ListenerContext,
        *,
        tls: TlsEndpoint | None = None,
        authentication: ListenerAuthentication | None = None,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
    ) -> None:
        self.address = address
        self.authentication = authentication
        self.network = context.network
        self.turn = context.turn
        self.requests = requests
        self.now = context.now
        self.shared_buffer = context.shared_buffer
        self.frame_bytes_max = context.frame_bytes_max
        self.bytes_in = ByteCount()
        self.advertised: tuple[str, int] | None = None
        self.served: list[ApiVersion] = []
        """The API versions that an ApiVersions response lists on this listener."""
        self.is_controllers = False
        """Whether this is a controller listener."""
        self.connections_max: int | None = None
        """The maximum number of connections of this listener; None if only that of all listeners counts."""
        self.is_reserved = False
        """Whether only nodes need this listener, so that the limit over all listeners does not hold here."""
        self.connections: dict[int, Connection] = {}
        self.connections_accepted = 0
        self.connections_refused = 0
        self._refusals_unlogged = 0
        self._refusal_logged_at = -REFUSALS_LOGGED_EVERY_S
        self.rate: AcceptRate | None = None
        """Connections accepted by this listener; None without a limit of its own."""
        self.throttled_ms = 0
        """For how long this listener has accepted nobody because of `max.connection.creation.rate`."""
        self._accepts_again: asyncio.TimerHandle | None = None
        self._limits = context.limits
        self._per_ip = context.per_ip
        self.tls = tls
        self.buffers = buffers
        self._backlog = context.backlog
        self._listening: BoundListener | None = None
        self.memory = context.memory
        self.memory_before_login = context.memory_before_login
        self.replies = context.replies
        self.is_open = False
        self.principals: GuardedPrincipalBuilder | None = None
        """The principal builder of this listener's clients; None for Kafka's default."""
        self.allowed_networks: Networks | None = None
        """The networks from which clients may connect; None means any."""
        self.address_rates: ConnectionRates | None = None
        """Connection creation rate quotas by address; None while none is set."""

    @property
    def port(self) -> int:
        """The bound port."""
        assert self._listening is not None
        return self._listening.port

    async def start(self) -> None:
        """Bind the socket and accept connections; an ``OSError`` names the address."""
        try:
            self._listening = await self.network.listen(
                self._protocol,
                host=self.address.host,
                port=self.address.port,
                tls=None if self.tls is None else self.tls.context,
                backlog=self._backlog,
                buffers=self.buffers,
            )
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {self.address}: {error.strerror or error}") from error

    def open(self) -> None:
        """Start handling requests, including those of connections accepted before."""
        self.is_open = True
        for connection in list(self.connections.values()):
            connection.begin()

    def _protocol(self) -> asyncio.BaseProtocol:
        limits = self._limits
        if self.rate is not None or limits.rate is not None:
            wait_ms = self._throttle_ms()
            self.throttled_ms += wait_ms
            self._pause(wait_ms)
        if limits.connections >= limits.connections_possible and not self.is_reserved:
            self._pause(FULL_PAUSE_MS)
        return ConnectionProtocol(self._connection())

    def _throttle_ms(self) -> int:
        """Count an accepted connection; returns the time until the creation rates of this listener and of the broker
        allow another one."""
        now_ms = int(self.now() * 1000)
        wait_ms = 0 if self.rate is None else self.rate.accepted(now_ms)
        if self._limits.rate is not None and not self.is_reserved:
            wait_ms = max(wait_ms, self._limits.rate.accepted(now_ms))
        return wait_ms

    def _pause(self, wait_ms: int) -> None:
        """Accept nobody for this long; connections wait in the system's queue."""
        if wait_ms and self._accepts_again is None and self._listening is not None:
            self._listening.pause()
            self._accepts_again = asyncio.get_running_loop().call_later(wait_ms / 1000, self._accept_again)

    def _accept_again(self) -> None:
        self._accepts_again = None
        if self._listening is not None:
            self._listening.resume()

    def limit_rate(self, rate: AcceptRate | None) -> None:
        """Set the creation rate of this listener; what it waits for under an earlier one ends."""
        self.rate = rate
        if self._accepts_again is not None:
            self._accepts_again.cancel()
            self._accept_again()

    def _connection(self) -> Connection:
        self.connections_accepted += 1
        return Connection(self, self.connections_accepted)

    def refused(self, connection: Connection, reason: str) -> None:
        """Count a refused connection. Only some are logged: their number is up to the clients."""
        self.connections_refused += 1
        now = self.now()
        if now - self._refusal_logged_at < REFUSALS_LOGGED_EVERY_S:
            self._refusals_unlogged += 1
            return
        others = f" ({self._refusals_unlogged} others since the last message)" if self._refusals_unlogged else ""
        log.warning("connection from %s:%s refused: %s%s", connection.peer_host, connection.peer_port, reason, others)
        self._refusal_logged_at, self._refusals_unlogged = now, 0

    def admit(self, connection: Connection) -> str | None:
        """Admit and count a new connection; if its address is not allowed or a limit is exceeded, returns the reason
        instead.
        """
        limits = self._limits
        host = connection.peer_host
        if self.allowed_networks is not None and host not in self.allowed_networks:
            return f"not in millbeck.allowed.networks of listener {self.address.name}"
        from_host = self._per_ip.get(host, 0)
        if self.connections_max is not None and len(self.connections) >= self.connections_max:
            return f"max.connections={self.connections_max} of listener {self.address.name} reached"
        if limits.connections >= limits.connections_max and not self.is_reserved:
            return f"max.connections={limits.connections_max} reached"
        if limits.connections >= limits.connections_possible and not self.is_reserved:
            return f"the limit of open files (ulimit -n) leaves room for {limits.connections_possible}"
        allowed = limits.overrides_per_ip.get(host, limits.connections_max_per_ip)
        if from_host >= allowed:
            return f"max.connections.per.ip={allowed} reached"
        if self.address_rates is not None and not self.address_rates.admits(host):
            return "connection_creation_rate quota of the address exceeded"
        limits.connections += 1
        self._per_ip[host] = from_host + 1
        self.connections[connection.number] = connection
        return None

    def forget(self, connection: Connection) -> None:
        if self.connections.pop(connection.number, None) is None:
            return
        self._limits.connections -= 1
        left = self._per_ip[connection.peer_host] - 1
        if left:
            self._per_ip[connection.peer_host] = left
        else:
            del self._per_ip[connection.peer_host]

    def close_overdue(self, *, idle_max: float, frame_max: float, stall_max: float) -> None:
        now = self.now()
        for connection in list(self.connections.values()):
            reason = connection.overdue(now, idle_max=idle_max, frame_max=frame_max, stall_max=stall_max)
            if reason:
                connection.close(reason)

    def stop_accepting(self) -> None:
        if self._accepts_again is not None:
            self._accepts_again.cancel()
        if self._listening is not None:
            self._listening.close()

    def drain(self) -> None:
        for connection in list(self.connections.values()):
            connection.close_when_answered()

    def abort(self) -> None:
        for connection in list(self.connections.values()):
            connection.close("the node shuts down")
