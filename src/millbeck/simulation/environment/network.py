"""The simulated network of one process: the kernel's ``Network``, and the calls that asyncio itself makes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from millbeck.host.transport_stream import TransportStream
from millbeck.kernel.environment import SYSTEM_BUFFERS, BoundListener, ConnectionStream, SocketBuffers
from millbeck.kernel.tls import TlsContext, TlsSettings, TlsSource
from millbeck.simulation.environment.fabric import Fabric
from millbeck.simulation.environment.process import Process


class SimNetwork:
    """``host`` is a machine's name or address; loopback names refer to the same machine. There is no TLS."""

    def __init__(self, fabric: Fabric, process: Process) -> None:
        self._fabric = fabric
        self._process = process

    async def listen(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: TlsSource | None = None,
        backlog: int = 1024,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
    ) -> BoundListener:
        _refuse_tls(tls)
        bound = self._fabric.listen(self._process, make_protocol, host, port)
        return BoundListener(
            port=bound,
            close=partial(self._fabric.stop_listening, self._process, bound),
            pause=partial(self._fabric.pause_listening, self._process, bound),
            resume=partial(self._fabric.resume_listening, self._process, bound),
        )

    async def connect(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: TlsSource | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        _refuse_tls(tls)
        return await self._fabric.connect(self._process, make_protocol, host, port)

    def tls_context(self, settings: TlsSettings) -> TlsContext:
        raise _no_tls()

    def host_name(self) -> str:
        return self._process.machine_name

    def connection_stream(
        self, transport: asyncio.Transport, *, buffers: SocketBuffers = SYSTEM_BUFFERS
    ) -> ConnectionStream:
        return TransportStream(transport)


class SimServer(asyncio.AbstractServer):
    """The result of ``loop.create_server``."""

    def __init__(self, fabric: Fabric, process: Process, port: int) -> None:
        self.port = port
        self._fabric = fabric
        self._process = process
        self._is_serving = True

    def close(self) -> None:
        self._is_serving = False
        self._fabric.stop_listening(self._process, self.port)

    def is_serving(self) -> bool:
        return self._is_serving

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._fabric.loop

    async def start_serving(self) -> None:
        """Does nothing: the server accepts connections from its creation."""

    async def serve_forever(self) -> None:
        await self._fabric.loop.create_future()

    async def wait_closed(self) -> None:
        """Returns at once: closing has no delay."""


def _refuse_tls(tls: TlsSource | None) -> None:
    if tls is not None:
        raise _no_tls()


def _no_tls() -> NotImplementedError:
    return NotImplementedError("TLS draws randomness that no seed controls: test it on real sockets")
