"""A process's door to the simulated wires: the kernel's ``Network``, and what plain asyncio calls need of it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from millbeck.host.transport_outlet import TransportOutlet
from millbeck.kernel.environment import SYSTEM_BUFFERS, Listening, Outlet, SocketBuffers
from millbeck.testing.sim.fabric import Fabric
from millbeck.testing.sim.process import Process


class SimNetwork:
    """``host`` is a machine's name or address; loopback names mean the own machine. There is no TLS."""

    def __init__(self, fabric: Fabric, process: Process) -> None:
        self._fabric = fabric
        self._process = process

    async def listen(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        backlog: int = 1024,
        buffers: SocketBuffers = SYSTEM_BUFFERS,
    ) -> Listening:
        _refuse_tls(tls)
        bound = self._fabric.listen(self._process, make_protocol, host, port)
        return Listening(port=bound, close=lambda: self._fabric.stop_listening(self._process, bound))

    async def connect(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        _refuse_tls(tls)
        return await self._fabric.connect(self._process, make_protocol, host, port)

    def host_name(self) -> str:
        return self._process.machine_name

    def outlet(self, transport: asyncio.Transport, *, buffers: SocketBuffers = SYSTEM_BUFFERS) -> Outlet:
        return TransportOutlet(transport)


class SimServer(asyncio.AbstractServer):
    """What ``loop.create_server`` returns."""

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
        """It serves from the start."""

    async def serve_forever(self) -> None:
        await self._fabric.loop.create_future()

    async def wait_closed(self) -> None:
        """Nothing lingers."""


def _refuse_tls(tls: ssl.SSLContext | None) -> None:
    if tls is not None:
        raise NotImplementedError("TLS draws randomness that no seed controls: test it on real sockets")
