"""A listener: where clients connect, how many may, and what every connection of it shares."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass

from millbeck.kernel.environment import SYSTEM_BUFFERS, Listening, Network, SocketBuffers
from millbeck.replication.turn import Turn
from millbeck.server.connection import Connection, Requests
from millbeck.server.connection_protocol import ConnectionProtocol
from millbeck.server.receive import SharedBuffer
from millbeck.server.request_memory import ReplyMemory, RequestMemory
from millbeck.wire.messages.api_versions import ApiVersion


class ByteCount:
    """A plain counter on the hot path, read by the metrics."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerAddress:
    """One entry of ``listeners``: ``name://host:port`` and the security protocol its name maps to."""

    name: str
    host: str
    port: int
    protocol: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@dataclass(slots=True, kw_only=True)
class ConnectionLimits:
    """Counted over all listeners of the node; changed by dynamic config."""

    connections_max: int
    connections_max_per_ip: int
    overrides_per_ip: dict[str, int]
    connections: int = 0


class Listener:
    def __init__(
        self,
        address: ListenerAddress,
        *,
        network: Network,
        turn: Turn,
        requests: Requests,
        now: Callable[[], float],
        shared_buffer: SharedBuffer,
        frame_bytes_max: int,
        limits: ConnectionLimits,
        per_ip: dict[str, int],
        memory: RequestMemory | None = None,
        replies: ReplyMemory | None = None,
        tls: ssl.SSLContext | None = None,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
        backlog: int = 50,
    ) -> None:
        self.address = address
        self.network = network
        self.turn = turn
        self.requests = requests
        self.now = now
        self.shared_buffer = shared_buffer
        self.frame_bytes_max = frame_bytes_max
        self.bytes_in = ByteCount()
        self.advertised: tuple[str, int] | None = None
        self.served: list[ApiVersion] = []
        """What ApiVersions says on this listener."""
        self.is_controllers = False
        """Whether it answers for the controllers, not for the brokers."""
        self.connections: dict[int, Connection] = {}
        self.connections_accepted = 0
        self._limits = limits
        self._per_ip = per_ip
        self._tls = tls
        self.buffers = buffers
        self._backlog = backlog
        self._listening: Listening | None = None
        self.memory = memory or RequestMemory()
        self.replies = replies or ReplyMemory()
        self.is_open = False

    @property
    def port(self) -> int:
        """The bound port."""
        assert self._listening is not None
        return self._listening.port

    async def start(self) -> None:
        """Bind and serve; ``OSError`` names the address."""
        try:
            self._listening = await self.network.listen(
                self._protocol,
                host=self.address.host,
                port=self.address.port,
                tls=self._tls,
                backlog=self._backlog,
                buffers=self.buffers,
            )
        except OSError as error:
            raise OSError(error.errno, f"cannot listen on {self.address}: {error.strerror or error}") from error

    def open(self) -> None:
        """Take requests, those of connections that came early too."""
        self.is_open = True
        for connection in list(self.connections.values()):
            connection.begin()

    def _protocol(self) -> asyncio.BaseProtocol:
        return ConnectionProtocol(self._connection())

    def _connection(self) -> Connection:
        self.connections_accepted += 1
        return Connection(self, self.connections_accepted)

    def admit(self, connection: Connection) -> str | None:
        """Count a new connection; the reason when it is one too many."""
        limits = self._limits
        host = connection.peer_host
        from_host = self._per_ip.get(host, 0)
        if limits.connections >= limits.connections_max:
            return f"max.connections={limits.connections_max} reached"
        allowed = limits.overrides_per_ip.get(host, limits.connections_max_per_ip)
        if from_host >= allowed:
            return f"max.connections.per.ip={allowed} reached"
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
        if self._listening is not None:
            self._listening.close()

    def drain(self) -> None:
        for connection in list(self.connections.values()):
            connection.close_when_answered()

    def abort(self) -> None:
        for connection in list(self.connections.values()):
            connection.close("the node stops")
