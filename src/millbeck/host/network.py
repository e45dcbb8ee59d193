"""Sockets on asyncio's event loop.

``listen`` binds one socket per address family on the same port: IPv4 first, and IPv6 uses the port that IPv4 got.
SO_REUSEADDR allows a restart to bind a port with connections in TIME_WAIT; SO_REUSEPORT is never set, since a second
node would then bind silently and take connections. TCP_NODELAY is set by asyncio; keep-alive is inherited from the
listening socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from millbeck.host.acceptor import Acceptor
from millbeck.host.socket_stream import SocketStream
from millbeck.host.threads import HostThreads
from millbeck.kernel.environment import SYSTEM_BUFFERS, BoundListener, ConnectionStream, SocketBuffers
from millbeck.kernel.tls import TlsContext, TlsSettings, TlsSource

if TYPE_CHECKING:
    from millbeck.host.tls_handshakes import Handshakes
    from millbeck.host.tls_protocol import TlsBuffers, TlsProtocol

ACCEPT_QUEUE_MIN = 1024
"""Minimum accept backlog.

With 300 new connections a second, an event loop that is late by a fifth of a second would fill a backlog of 50, which
is enough for Kafka's acceptor thread. The kernel drops further connections, and the client retries after one second,
then three.
"""
_PORT_ATTEMPTS_MAX = 16
_FAMILY_MISSING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class HostNetwork:
    def __init__(self, *, is_linux: bool, threads: HostThreads | None = None) -> None:
        """``threads`` run the TLS handshakes that would block the event loop for milliseconds."""
        self._is_linux = is_linux
        self._threads = threads or HostThreads()
        self._handshakes: Handshakes | None = None
        self._tls_buffers: TlsBuffers | None = None

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
        def make() -> asyncio.BaseProtocol:
            return make_protocol() if tls is None else self._over_tls(make_protocol, tls(), buffers)

        addresses = await _addresses(host)
        sockets = _bind_all(addresses, port, is_wildcard=not host)
        try:
            for bound in sockets:
                _set_buffers(bound, buffers)
                bound.listen(max(backlog, ACCEPT_QUEUE_MIN))
        except BaseException:
            for bound in sockets:
                bound.close()
            raise
        bound_port: int = sockets[0].getsockname()[1]
        acceptors = [Acceptor(bound, make) for bound in sockets]

        def for_each(method: Callable[[Acceptor], None]) -> Callable[[], None]:
            def call() -> None:
                for acceptor in acceptors:
                    method(acceptor)

            return call

        return BoundListener(
            port=bound_port,
            close=for_each(Acceptor.close),
            pause=for_each(Acceptor.pause),
            resume=for_each(Acceptor.resume),
        )

    async def connect(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: TlsSource | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        loop = asyncio.get_running_loop()
        if tls is None:
            transport, protocol = await loop.create_connection(make_protocol, host, port)
            _keep_alive(transport)
            return transport, protocol
        context = tls()
        socket_transport, over_tls = await loop.create_connection(
            lambda: self._over_tls(make_protocol, context, SYSTEM_BUFFERS, server_name=host), host, port
        )
        _keep_alive(socket_transport)
        assert over_tls.secured is not None
        try:
            return await over_tls.secured
        except BaseException:
            socket_transport.abort()
            raise

    def _over_tls(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        tls: TlsContext,
        socket_buffers: SocketBuffers,
        server_name: str | None = None,
    ) -> TlsProtocol:
        # Imported here: most commands and many nodes use no TLS, and importing ssl is slow.
        from millbeck.host.tls_handshakes import Handshakes
        from millbeck.host.tls_protocol import TlsBuffers, TlsProtocol

        if self._handshakes is None or self._handshakes.loop is not asyncio.get_running_loop():
            self._handshakes = Handshakes(self._threads)
        if self._tls_buffers is None:
            self._tls_buffers = TlsBuffers()
        return TlsProtocol(
            make_protocol,
            tls,
            handshakes=self._handshakes,
            buffers=self._tls_buffers,
            is_linux=self._is_linux,
            socket_buffers=socket_buffers,
            server_name=server_name,
        )

    def tls_context(self, settings: TlsSettings) -> TlsContext:
        from millbeck.host.tls_context import make_context

        return make_context(settings)

    def host_name(self) -> str:
        name = socket.getfqdn()
        try:
            socket.getaddrinfo(name, None)
        except OSError:
            # Clients could not connect to a name that this host itself cannot resolve.
            return "localhost"
        return name

    def connection_stream(
        self, transport: asyncio.Transport, *, buffers: SocketBuffers = SYSTEM_BUFFERS
    ) -> ConnectionStream:
        if buffers.receive_bytes_max > buffers.receive_bytes:
            with contextlib.suppress(OSError):  # the connection may be closed already
                transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes
                )
        over_tls: ConnectionStream | None = getattr(transport, "stream", None)
        if over_tls is not None:
            return over_tls
        # asyncio's socket wrapper lacks the send methods, and the stream needs one of them with flags. A duplicate
        # socket would cost every connection a second descriptor.
        connected: socket.socket = transport.get_extra_info("socket")._sock
        return SocketStream(transport, connected, is_linux=self._is_linux, buffers=buffers)


def _keep_alive(transport: asyncio.Transport) -> None:
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


_Address = tuple[socket.AddressFamily, str]


async def _addresses(host: str) -> list[_Address]:
    """The addresses to bind, one per address family, IPv4 first."""
    if not host:
        return [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]
    found = await asyncio.get_running_loop().getaddrinfo(
        host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
    )
    first_of_family: dict[socket.AddressFamily, str] = {}
    for family, _, _, _, address in found:
        if family in (socket.AF_INET, socket.AF_INET6):
            first_of_family.setdefault(family, str(address[0]))
    return sorted(first_of_family.items(), key=lambda item: item[0] != socket.AF_INET)


def _bind_all(addresses: list[_Address], port: int, *, is_wildcard: bool) -> list[socket.socket]:
    """Bind every address to one port; with port 0, retry when the port that IPv4 got is in use on IPv6."""
    for attempt in range(_PORT_ATTEMPTS_MAX):
        sockets: list[socket.socket] = []
        chosen = port
        try:
            for family, address in addresses:
                try:
                    bound = _bind(family, address, chosen)
                except OSError as error:
                    # A host without one of the address families uses the other.
                    if error.errno in _FAMILY_MISSING and (sockets or (is_wildcard and family == socket.AF_INET)):
                        continue
                    raise
                sockets.append(bound)
                chosen = bound.getsockname()[1]
        except OSError as error:
            for bound in sockets:
                bound.close()
            if error.errno == errno.EADDRINUSE and port == 0 and sockets and attempt + 1 < _PORT_ATTEMPTS_MAX:
                continue
            raise
        if sockets:
            return sockets
    raise OSError(errno.EADDRNOTAVAIL, "no address to bind")


def _bind(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    # The protocol must be given: asyncio sets TCP_NODELAY only on sockets created as TCP.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        bound.setblocking(False)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind((address, port))
    except OSError:
        bound.close()
        raise
    return bound


def _set_buffers(bound: socket.socket, buffers: SocketBuffers) -> None:
    """Set the buffer sizes that accepted sockets inherit. The maximum TCP window is fixed when a connection is made,
    by the receive buffer at that time: so it is set to its maximum here, and `HostNetwork.connection_stream` reduces
    it.
    """
    if buffers.send_bytes > 0:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers.send_bytes)
    if buffers.receive_bytes > 0:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes)
        with contextlib.suppress(OSError):  # more than some systems allow; Linux limits it
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes_max)
