"""The socket's writer under a tiny send buffer, slow readers and resets at every position."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import struct
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from millbeck.host import socket_stream
from millbeck.host.files import HostFile, HostFiles
from millbeck.host.loop import HostLoop
from millbeck.host.socket_stream import SocketStream
from millbeck.kernel.environment import SYSTEM_BUFFERS, FileSlice, OpenMode, SocketBuffers

CONTENT = os.urandom(1 << 18) * 8


@pytest.fixture(params=[True, False], ids=["linux", "portable"])
def is_linux(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Any]:
    opened = HostFiles(is_linux=True).open(f"{tmp_path}/content", OpenMode.WRITE)
    opened.write([CONTENT], 0)
    yield opened
    opened.close()


class Connection(asyncio.Protocol):
    def __init__(self, is_linux: bool, buffers: SocketBuffers = SYSTEM_BUFFERS) -> None:
        self.is_linux = is_linux
        self.buffers = buffers
        self.lost = asyncio.Event()
        self.drained_count = 0

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.stream = SocketStream(
            transport, transport.get_extra_info("socket")._sock, is_linux=self.is_linux, buffers=self.buffers
        )
        self.stream.on_drained(self._drained)

    def _drained(self) -> None:
        self.drained_count += 1

    def connection_lost(self, error: Exception | None) -> None:
        self.stream.closed()
        self.lost.set()


async def _connected(
    is_linux: bool, *, send_buffer_bytes: int = 4096, receive_buffer_bytes: int = 4096, growth: int = 1
) -> Any:
    """A connection over a real TCP socket, and the peer as a plain non-blocking socket."""
    loop = asyncio.get_running_loop()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        peer = socket.socket()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        peer.connect(listener.getsockname())
        accepted, _ = listener.accept()
    peer.setblocking(False)
    buffers = SocketBuffers(send_bytes=send_buffer_bytes, growth=growth)
    _, connection = await loop.connect_accepted_socket(lambda: Connection(is_linux, buffers), accepted)
    return connection, peer


def _slice(file: HostFile, position: int, size: int, released: list[int]) -> FileSlice:
    return FileSlice(file, position, size, lambda: released.append(size))


async def _receive(peer: socket.socket, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        chunk = await asyncio.get_running_loop().sock_recv(peer, min(1 << 16, size - len(received)))
        if not chunk:
            break
        received += chunk
    return bytes(received)


def _reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    peer.close()


def _descriptors() -> int:
    return len(os.listdir("/dev/fd"))


def test_a_full_socket_is_not_asked_again_before_it_has_room(file: HostFile, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[Any] = []

    def sendfile(*arguments: Any) -> Any:
        try:
            return real(*arguments)
        except BlockingIOError:
            refused.append(arguments)
            raise

    real = os.sendfile
    monkeypatch.setattr(os, "sendfile", sendfile)

    async def scenario() -> int:
        connection, peer = await _connected(True, send_buffer_bytes=1 << 15)
        released: list[int] = []
        connection.stream.send([_slice(file, 0, 1 << 20, released)])
        queued_bytes: int = connection.stream.queued_bytes
        _reset(peer)
        await connection.lost.wait()
        return queued_bytes

    assert 0 < asyncio.run(scenario()) < 1 << 20
    assert refused == []


@pytest.mark.parametrize(("part", "growth"), [("slice", 4), ("slice", 1), ("bytes", 4)])
def test_a_long_slice_that_does_not_fit_makes_the_send_buffer_larger_once(
    file: HostFile, part: str, growth: int
) -> None:
    async def scenario() -> list[int]:
        connection, peer = await _connected(True, send_buffer_bytes=1 << 14, growth=growth)
        connected = connection.transport.get_extra_info("socket")
        sizes = [connected.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)]
        for _ in range(2):
            connection.stream.send([_slice(file, 0, 1 << 20, []) if part == "slice" else CONTENT[: 1 << 20]])
            assert await _receive(peer, 1 << 20) == CONTENT[: 1 << 20]
            sizes.append(connected.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        peer.close()
        await connection.lost.wait()
        return sizes

    before, first, second = asyncio.run(scenario())
    assert first == second == (4 * before if (part, growth) == ("slice", 4) else before)


def test_a_tiny_send_buffer_and_a_slow_reader(is_linux: bool, file: HostFile) -> None:
    async def scenario() -> object:
        connection, peer = await _connected(is_linux)
        released: list[int] = []
        expected = b"h" * 100 + CONTENT[7 : 7 + 90_000] + b"t" * 10 + CONTENT[:1000]
        connection.stream.send(
            [b"h" * 100, _slice(file, 7, 90_000, released), b"t" * 10, _slice(file, 0, 1000, released)]
        )
        assert connection.stream.queued_bytes > 0
        received = b""
        while len(received) < len(expected):
            received += await _receive(peer, min(3000, len(expected) - len(received)))
        await asyncio.sleep(0)
        while connection.stream.queued_bytes:
            await asyncio.sleep(0.001)
        peer.close()
        await connection.lost.wait()
        return received == expected, released, connection.drained_count

    assert asyncio.run(scenario()) == (True, [90_000, 1000], 1)


@pytest.mark.parametrize("reply", ["bytes", "small slice", "large slice"])
def test_a_reset_at_every_byte_position(
    is_linux: bool, file: HostFile, reply: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The peer reads so many bytes and resets; nothing is left behind, and every slice was released once."""
    monkeypatch.setattr(socket_stream, "COPIED_SLICE_BYTES_MAX", 1000)

    async def scenario() -> None:
        for position in (*range(24), 700, 4096, 9000, 20_000):
            connection, peer = await _connected(is_linux)
            released: list[int] = []
            size = 500 if reply == "small slice" else 60_000
            for _ in range(2):
                part = b"x" * size if reply == "bytes" else _slice(file, 3, size, released)
                connection.stream.send([b"head", part])
            wanted = min(position, 2 * (size + 4))
            assert len(await _receive(peer, wanted)) == wanted
            _reset(peer)
            # The reader's side notices on its own; a writer that is blocked notices, too.
            async with asyncio.timeout(5):
                await connection.lost.wait()
            assert connection.stream.queued_bytes == 0
            assert released == ([] if reply == "bytes" else [size, size])
            connection.stream.send([b"late", _slice(file, 0, 1, released)])
            assert released[-1] == 1

    before = _descriptors()
    asyncio.run(scenario())
    assert _descriptors() == before


def test_a_writer_that_is_blocked_notices_a_reset_while_reading_is_paused(is_linux: bool, file: HostFile) -> None:
    async def scenario() -> object:
        connection, peer = await _connected(is_linux)
        released: list[int] = []
        connection.transport.pause_reading()
        connection.stream.send([_slice(file, 0, 1 << 20, released)])
        await asyncio.sleep(0.01)
        assert connection.stream.queued_bytes > 0
        _reset(peer)
        async with asyncio.timeout(5):
            await connection.lost.wait()
        return released

    assert asyncio.run(scenario()) == [1 << 20]


def test_a_connection_holds_one_descriptor_blocked_or_not(is_linux: bool, file: HostFile) -> None:
    async def scenario() -> object:
        connection, peer = await _connected(is_linux)
        idle = _descriptors()
        connection.stream.send([b"x" * 100_000])
        blocked = _descriptors()
        await _receive(peer, 100_000)
        while connection.stream.queued_bytes:
            await asyncio.sleep(0.001)
        drained = _descriptors()
        peer.close()
        await connection.lost.wait()
        return blocked - idle, drained - idle

    assert asyncio.run(scenario()) == (0, 0)


def test_nothing_is_sent_or_read_once_the_transport_closes(is_linux: bool) -> None:
    async def scenario() -> None:
        connection, peer = await _connected(is_linux)
        connection.transport.pause_reading()
        peer.send(b"unread")
        connection.transport.abort()
        connection.stream.send([b"too late"])
        assert connection.stream.receive(memoryview(bytearray(10))) == 0
        peer.setblocking(True)
        peer.settimeout(5)
        await connection.lost.wait()
        # What was not read makes the kernel reset the connection; what it had sent would still come before that.
        with peer, pytest.raises(ConnectionResetError):
            assert peer.recv(100) == b"nothing"

    asyncio.run(scenario())


def test_an_aborted_transport_stops_the_writer(is_linux: bool, file: HostFile) -> None:
    async def scenario() -> Any:
        connection, peer = await _connected(is_linux)
        released: list[int] = []
        connection.stream.send([_slice(file, 0, 1 << 20, released)])
        before = _descriptors()
        connection.transport.abort()
        connection.stream.send([b"dropped", _slice(file, 0, 5, released)])
        await connection.lost.wait()
        after = _descriptors()
        await asyncio.sleep(0.01)
        peer.close()
        return before - after, sorted(released)

    closed, released = asyncio.run(scenario())
    assert closed == 1
    assert released == [5, 1 << 20]


def test_one_reader_cannot_take_the_whole_turn(is_linux: bool, file: HostFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for everything in the socket, a large reply still leaves in several turns."""
    monkeypatch.setattr(socket_stream, "TURN_BYTES_MAX", 100_000)
    sizes = []
    real_writev, real_sendfile = os.writev, os.sendfile

    def writev(descriptor: int, buffers: Any) -> Any:
        sizes.append(sum(map(len, buffers)))
        return real_writev(descriptor, buffers)

    def sendfile(target: int, source: int, position: int, count: int) -> Any:
        sizes.append(count)
        return real_sendfile(target, source, position, count)

    monkeypatch.setattr(os, "writev", writev)
    monkeypatch.setattr(os, "sendfile", sendfile)

    async def scenario() -> Any:
        connection, peer = await _connected(is_linux, send_buffer_bytes=1 << 20, receive_buffer_bytes=1 << 20)
        released: list[int] = []
        connection.stream.send([b"head", _slice(file, 0, 300_000, released)])
        queued = connection.stream.queued_bytes
        received = await _receive(peer, 300_004)
        peer.close()
        await connection.lost.wait()
        return queued, received == b"head" + CONTENT[:300_000], released

    queued, is_whole, released = asyncio.run(scenario())
    assert queued >= 180_000
    assert is_whole
    assert released == [300_000]
    assert max(sizes) <= 120_000


def test_a_failing_write_aborts_instead_of_raising(is_linux: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> int:
        raise OSError(errno.EIO, "broken")

    async def scenario(parts: Any) -> object:
        connection, peer = await _connected(is_linux)
        monkeypatch.setattr(os, "write", broken)
        monkeypatch.setattr(os, "writev", broken)
        connection.stream.send(parts)
        monkeypatch.undo()
        async with asyncio.timeout(5):
            await connection.lost.wait()
        peer.close()
        return connection.stream.queued_bytes

    assert asyncio.run(scenario([b"one"])) == 0
    assert asyncio.run(scenario([b"one", b"two"])) == 0


class Reading(Connection):
    """Lets its stream read."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.buffer = bytearray(1 << 16)
        self.received = bytearray()
        self.fails = False
        self.stream.begin_reading(lambda _: memoryview(self.buffer), self.buffer_updated)

    def data_received(self, data: bytes) -> None:
        raise AssertionError("the transport has read")

    def buffer_updated(self, count: int) -> None:
        if self.fails:
            raise ValueError("a bug in the caller")
        self.received += self.buffer[:count]


async def _until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.001)


Runs = Callable[[Coroutine[Any, Any, Any]], Any]


@pytest.fixture(params=[asyncio.SelectorEventLoop, HostLoop, lambda: HostLoop(has_epoll=False)])
def run(request: pytest.FixtureRequest) -> Runs:
    def run(scenario: Coroutine[Any, Any, Any]) -> Any:
        with asyncio.Runner(loop_factory=request.param) as runner:
            return runner.run(scenario)

    return run


async def _reading(is_linux: bool) -> Any:
    ours, peer = socket.socketpair()
    peer.setblocking(False)
    _, connection = await asyncio.get_running_loop().connect_accepted_socket(lambda: Reading(is_linux), ours)
    await asyncio.sleep(0)  # it takes over when the transport has begun to read
    return connection, peer


def test_it_reads_in_place_of_the_transport_until_the_peer_has_closed(run: Runs) -> None:
    async def scenario() -> bytes:
        connection, peer = await _reading(True)
        for piece in (b"one", b"two"):
            peer.send(piece)
            await _until(partial(connection.received.endswith, piece))
        peer.close()
        async with asyncio.timeout(5):
            await connection.lost.wait()
        return bytes(connection.received)

    assert run(scenario()) == b"onetwo"


def test_nothing_is_read_while_paused(run: Runs) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        connection, peer = await _reading(True)
        connection.stream.pause_reading()
        peer.send(b"later")
        await asyncio.sleep(0.01)
        before = bytes(connection.received)
        connection.stream.resume_reading()
        await _until(lambda: connection.received)
        peer.close()
        async with asyncio.timeout(5):
            await connection.lost.wait()
        return before, bytes(connection.received)

    assert run(scenario()) == (b"", b"later")


def test_it_may_be_paused_before_it_has_begun(run: Runs) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        ours, peer = socket.socketpair()
        _, connection = await asyncio.get_running_loop().connect_accepted_socket(lambda: Reading(True), ours)
        connection.stream.pause_reading()
        peer.send(b"later")
        await asyncio.sleep(0.01)
        before = bytes(connection.received)
        connection.stream.resume_reading()
        await _until(lambda: connection.received)
        peer.close()
        async with asyncio.timeout(5):
            await connection.lost.wait()
        return before, bytes(connection.received)

    assert run(scenario()) == (b"", b"later")


def test_it_reads_on_while_a_reply_cannot_leave(run: Runs, file: HostFile) -> None:
    async def scenario() -> tuple[bytes, bytes]:
        connection, peer = await _reading(True)
        connection.stream.send([b"x" * 3_000_000])
        assert connection.stream.queued_bytes
        peer.send(b"meanwhile")
        await _until(lambda: connection.received)
        sent = await _receive(peer, 3_000_000)
        peer.send(b", after")
        await _until(lambda: connection.received.endswith(b"after"))
        peer.close()
        await connection.lost.wait()
        return bytes(connection.received), sent

    assert run(scenario()) == (b"meanwhile, after", b"x" * 3_000_000)


def test_a_reset_ends_the_connection(run: Runs) -> None:
    async def scenario() -> None:
        connection, peer = await _connected(True)
        connection.stream.begin_reading(lambda _: memoryview(bytearray(10)), lambda count: None)
        await asyncio.sleep(0)
        _reset(peer)
        async with asyncio.timeout(5):
            await connection.lost.wait()

    run(scenario())


def test_a_receiver_that_raises_loses_its_connection_and_is_reported(run: Runs) -> None:
    async def scenario() -> list[type]:
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
        connection, peer = await _reading(True)
        connection.fails = True
        peer.send(b"x")
        async with asyncio.timeout(5):
            await connection.lost.wait()
        peer.close()
        return [type(error) for error in reported]

    assert run(scenario()) == [ValueError]


def test_a_release_that_raises_does_not_leave_a_spinning_writer(is_linux: bool, file: HostFile) -> None:
    def fail() -> None:
        raise ValueError("a bug in the caller")

    async def scenario() -> object:
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context["exception"]))
        connection, peer = await _connected(is_linux, send_buffer_bytes=1 << 16, receive_buffer_bytes=1 << 16)
        connection.stream.send([b"x" * 1_000_000, FileSlice(file, 0, 10, fail)])
        receiving = asyncio.ensure_future(_receive(peer, 2_000_000))
        async with asyncio.timeout(5):
            await connection.lost.wait()
        await receiving
        peer.close()
        return [type(error) for error in reported]

    assert asyncio.run(scenario()) == [ValueError]


async def _rests_of_a_stream(monkeypatch: pytest.MonkeyPatch, others: str) -> list[float]:
    """How long the loop sleeps before it reads a request of a connection that is to rest until some time to come."""
    loop = asyncio.get_running_loop()
    connection, peer = await _connected(True)
    rests: list[float] = []
    slept_until: list[float] = []

    def sleep(seconds: float) -> None:
        rests.append(seconds)
        peer.send(b" and more")
        slept_until.append(time.monotonic())

    handled_at: list[float] = []
    received = bytearray(4096)
    read: asyncio.Future[int] = loop.create_future()

    def buffer_updated(count: int) -> None:
        handled_at.append(time.monotonic())
        if not read.done():
            read.set_result(count)
            monkeypatch.undo()

    connection.stream.begin_reading(lambda hint: memoryview(received), buffer_updated)
    await asyncio.sleep(0.01)
    moderation = connection.stream._moderation
    at = time.monotonic() + 10
    while moderation.on_readable(at) <= 0:
        at += 0.0001
        moderation.read_at, moderation.size_bytes, moderation.handled_at = at, 16 << 10, at
    monkeypatch.setattr(time, "sleep", sleep)
    one, other = socket.socketpair()
    one.setblocking(False)
    if others == "a descriptor":
        loop.add_reader(one, lambda: one.recv(1))
        other.send(b"x")
    peer.send(b"a request")
    async with asyncio.timeout(10):
        count = await read
    assert bytes(received[:count]) == (b"a request and more" if rests else b"a request")
    assert not slept_until or slept_until[0] <= moderation.read_at
    assert moderation.read_at <= handled_at[0] <= moderation.handled_at
    one.close()
    other.close()
    _reset(peer)
    await connection.lost.wait()
    return rests


def test_a_stream_is_left_to_gather(monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.Runner(loop_factory=HostLoop) as runner:
        (rest_s,) = runner.run(_rests_of_a_stream(monkeypatch, "nobody"))
    assert 9 < rest_s < 11


def test_nobody_rests_while_another_descriptor_is_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    with asyncio.Runner(loop_factory=HostLoop) as runner:
        assert runner.run(_rests_of_a_stream(monkeypatch, "a descriptor")) == []


@pytest.mark.parametrize("loop_factory", [asyncio.SelectorEventLoop, lambda: HostLoop(has_epoll=False)])
def test_nobody_rests_on_a_loop_that_cannot_tell_what_else_is_ready(
    monkeypatch: pytest.MonkeyPatch, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        assert runner.run(_rests_of_a_stream(monkeypatch, "nobody")) == []


def test_a_read_that_fills_the_buffer_is_followed_at_once() -> None:
    async def scenario() -> tuple[float, float]:
        connection, peer = await _connected(True)
        received = bytearray(4)
        counts: list[int] = []
        lent: list[memoryview] = []
        reported = []
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))

        def get_buffer(hint: int) -> memoryview:
            lent.append(memoryview(received))
            return lent[-1]

        def buffer_updated(count: int) -> None:
            lent.pop().release()
            counts.append(count)

        connection.stream.begin_reading(get_buffer, buffer_updated)
        await asyncio.sleep(0.01)
        peer.send(b"12345")
        while len(counts) < 1:
            await asyncio.sleep(0)
        moderation = connection.stream._moderation
        after_full = moderation.handled_at
        while len(counts) < 2:
            await asyncio.sleep(0)
        after_rest = moderation.handled_at
        assert reported == []
        _reset(peer)
        await connection.lost.wait()
        return after_full, after_rest

    with asyncio.Runner(loop_factory=HostLoop) as runner:
        after_full, after_rest = runner.run(scenario())
    assert after_full == 0.0
    assert after_rest > 0.0
