"""What is particular to real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import Any

import pytest

from millbeck.host import network as network_module
from millbeck.host.network import HostNetwork
from millbeck.host.socket_stream import SocketStream
from millbeck.host.threads import HostThreads
from millbeck.kernel.environment import SocketBuffers


class Accepted(asyncio.Protocol):
    def __init__(self, accepted: list[Any]) -> None:
        self.accepted = accepted

    def connection_made(self, transport: Any) -> None:
        self.accepted.append(transport)


def _network() -> HostNetwork:
    return HostNetwork(is_linux=True, threads=HostThreads(thread_count=1))


async def _accept_one(**options: Any) -> Any:
    accepted: list[Any] = []
    network = _network()
    listening = await network.listen(lambda: Accepted(accepted), host="127.0.0.1", port=0, **options)
    transport, _ = await network.connect(asyncio.Protocol, host="127.0.0.1", port=listening.port)
    while not accepted:
        await asyncio.sleep(0.001)
    listening.close()
    return accepted[0], transport


def test_both_ends_send_at_once_and_keep_alive() -> None:
    async def scenario() -> Any:
        settings = []
        for transport in await _accept_one():
            connected = transport.get_extra_info("socket")
            settings.append(connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            settings.append(connected.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
            transport.abort()
        return settings

    assert all(asyncio.run(scenario()))


def test_a_late_loop_turns_no_connection_away() -> None:
    """The kernel drops a handshake for which its queue has no place, and the client waits a second to try again."""

    async def scenario() -> None:
        listening = await _network().listen(asyncio.Protocol, host="127.0.0.1", port=0, backlog=50)
        with contextlib.ExitStack() as stack:
            for _ in range(200):  # on the loop, which accepts nobody meanwhile
                stack.enter_context(socket.create_connection(("127.0.0.1", listening.port), timeout=0.9))
        listening.close()

    asyncio.run(scenario())


def test_buffer_sizes_reach_accepted_sockets() -> None:
    async def scenario() -> Any:
        accepted, transport = await _accept_one(buffers=SocketBuffers(send_bytes=4096, receive_bytes=8192))
        connected = accepted.get_extra_info("socket")
        sizes = [connected.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_SNDBUF, socket.SO_RCVBUF)]
        accepted.abort()
        transport.abort()
        return sizes

    send, receive = asyncio.run(scenario())
    assert send <= 16384  # the kernel doubles what it is given
    assert receive <= 32768


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_one_port_serves_both_families() -> None:
    async def scenario() -> Any:
        network = _network()
        listening = await network.listen(lambda: Accepted([]), host="", port=0)
        ports = []
        for host in ("127.0.0.1", "::1"):
            transport, _ = await network.connect(asyncio.Protocol, host=host, port=listening.port)
            ports.append(transport.get_extra_info("peername")[1])
            transport.abort()
        with pytest.raises(OSError) as caught:
            await network.listen(lambda: Accepted([]), host="::1", port=listening.port)
        listening.close()
        return ports, listening.port, caught.value.errno

    ports, port, error = asyncio.run(scenario())
    assert ports == [port, port]
    assert error == errno.EADDRINUSE


@pytest.mark.skipif(not _has_ipv6(), reason="this machine has no IPv6")
def test_a_port_that_is_taken_on_the_other_family_is_given_up_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    real_bind: Any = network_module._bind
    tried: list[int] = []

    def bind(family: int, address: str, port: int) -> Any:
        if family == socket.AF_INET6:
            tried.append(port)
            if len(tried) < 3:
                raise OSError(errno.EADDRINUSE, "taken")
        return real_bind(family, address, port)

    monkeypatch.setattr(network_module, "_bind", bind)

    async def scenario() -> object:
        listening = await _network().listen(lambda: Accepted([]), host="", port=0)
        listening.close()
        return listening.port

    assert asyncio.run(scenario()) == tried[2]


def test_a_host_without_the_other_family_serves_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real_bind: Any = network_module._bind

    def bind(family: int, address: str, port: int) -> Any:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, "no such family")
        return real_bind(family, address, port)

    monkeypatch.setattr(network_module, "_bind", bind)

    async def scenario() -> Any:
        network = _network()
        listening = await network.listen(lambda: Accepted([]), host="", port=0)
        transport, _ = await network.connect(asyncio.Protocol, host="127.0.0.1", port=listening.port)
        transport.abort()
        listening.close()
        return listening.port

    assert asyncio.run(scenario()) > 0


def test_a_chosen_port_that_is_taken_is_an_error_and_leaks_nothing() -> None:
    async def scenario() -> object:
        network = _network()
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen()
            with pytest.raises(OSError) as caught:
                await network.listen(lambda: Accepted([]), host="127.0.0.1", port=holder.getsockname()[1])
        return caught.value.errno

    assert asyncio.run(scenario()) == errno.EADDRINUSE


def test_a_plain_socket_gets_the_stream_that_owns_it() -> None:
    async def scenario() -> object:
        accepted, transport = await _accept_one()
        stream = _network().connection_stream(accepted)
        accepted.abort()
        transport.abort()
        return stream

    assert isinstance(asyncio.run(scenario()), SocketStream)


def test_a_window_grows_with_the_receive_buffer_of_a_connection_that_exists() -> None:
    """How far it can is settled with the handshake, so the listener's buffer must be as large as it may become."""

    async def filled(connected: socket.socket, peer: socket.socket) -> int:
        """What one read finds when the peer sends all it may, after the window has settled."""
        count = 0
        for _ in range(12):
            for _ in range(50):
                try:
                    peer.send(b"x" * 65_536)
                except BlockingIOError:
                    await asyncio.sleep(0.0005)
            try:
                count = len(connected.recv(8 << 20))
            except BlockingIOError:
                continue
        return count

    async def scenario() -> Any:
        # So small that four times as much is within the limits of every system.
        buffers = SocketBuffers(receive_bytes=32_768, growth=4)
        accepted, transport = await _accept_one(buffers=buffers)
        accepted.pause_reading()
        stream = _network().connection_stream(accepted, buffers=buffers)
        connected, peer = (one.get_extra_info("socket")._sock for one in (accepted, transport))
        sizes = [connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)]
        counts = [await filled(connected, peer)]
        stream.expect_long_requests()
        stream.expect_long_requests()
        sizes.append(connected.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF))
        counts.append(await filled(connected, peer))
        accepted.abort()
        transport.abort()
        return sizes, counts

    sizes, counts = asyncio.run(scenario())
    assert sizes[1] == 4 * sizes[0]
    assert counts[1] > 2 * counts[0]
