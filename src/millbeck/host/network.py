"""Real sockets on the standard library's event loop.

``listen`` binds one socket per address family on the same port: IPv4 first, and IPv6 takes the port that came out.
SO_REUSEADDR lets a restart take over a port with connections in TIME_WAIT; SO_REUSEPORT is never set, since a second
node would then bind silently and steal connections. TCP_NODELAY is set by asyncio; keep-alive is inherited from the
listening socket.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
import ssl
from collections.abc import Callable

from millbeck.host.outlet import SocketOutlet
from millbeck.host.transport_outlet import TransportOutlet
from millbeck.kernel.environment import SYSTEM_BUFFERS, Listening, Outlet, SocketBuffers

_PORT_ATTEMPTS_MAX = 16
_TLS_HANDSHAKE_TIMEOUT_S = 10.0
_FAMILY_MISSING = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT)


class HostNetwork:
    def __init__(self, *, is_linux: bool) -> None:
        self._is_linux = is_linux

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
        loop = asyncio.get_running_loop()
        addresses = await _addresses(host)
        sockets = _bind_all(addresses, port, is_wildcard=not host)
        servers: list[asyncio.AbstractServer] = []
        try:
            for bound in sockets:
                _set_buffers(bound, buffers)
                servers.append(
                    await loop.create_server(
                        make_protocol,
                        sock=bound,
                        ssl=tls,
                        backlog=backlog,
                        ssl_handshake_timeout=_TLS_HANDSHAKE_TIMEOUT_S if tls is not None else None,
                    )
                )
        except BaseException:
            for bound in sockets:
                bound.close()
            raise
        bound_port: int = sockets[0].getsockname()[1]

        def close() -> None:
            for server in servers:
                server.close()

        return Listening(port=bound_port, close=close)

    async def connect(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(
            make_protocol,
            host,
            port,
            ssl=tls,
            ssl_handshake_timeout=_TLS_HANDSHAKE_TIMEOUT_S if tls is not None else None,
        )
        connected = transport.get_extra_info("socket")
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        return transport, protocol

    def host_name(self) -> str:
        name = socket.getfqdn()
        try:
            socket.getaddrinfo(name, None)
        except OSError:
            # Nobody could connect to a name that this host itself does not know.
            return "localhost"
        return name

    def outlet(self, transport: asyncio.Transport, *, buffers: SocketBuffers = SYSTEM_BUFFERS) -> Outlet:
        if buffers.receive_bytes_max > buffers.receive_bytes:
            with contextlib.suppress(OSError):  # of a connection that is over already
                transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes
                )
        if transport.get_extra_info("sslcontext") is not None:
            return TransportOutlet(transport)
        # asyncio lends its socket without the calls that send. The outlet needs one of them, with flags; a duplicate
        # would cost every connection a second descriptor.
        connected: socket.socket = transport.get_extra_info("socket")._sock
        return SocketOutlet(transport, connected, is_linux=self._is_linux, buffers=buffers)


_Address = tuple[socket.AddressFamily, str]


async def _addresses(host: str) -> list[_Address]:
    """Where to bind, one address per family, IPv4 first."""
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
    """Bind every address to one port; with port 0, try again when the port IPv4 got is taken on IPv6."""
    for attempt in range(_PORT_ATTEMPTS_MAX):
        sockets: list[socket.socket] = []
        chosen = port
        try:
            for family, address in addresses:
                try:
                    bound = _bind(family, address, chosen)
                except OSError as error:
                    # A host without one of the families serves the other.
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
    # The protocol must be named: asyncio sets TCP_NODELAY only on sockets that say they are TCP.
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
    """Accepted sockets inherit both. How wide the window can ever become is settled when a connection is made, by the
    receive buffer of that time: so it is as large as it may grow, and `HostNetwork.outlet` makes it smaller."""
    if buffers.send_bytes > 0:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers.send_bytes)
    if buffers.receive_bytes > 0:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes)
        with contextlib.suppress(OSError):  # more than some systems allow; Linux gives what it has
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers.receive_bytes_max)
