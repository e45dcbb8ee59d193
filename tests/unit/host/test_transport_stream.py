"""How much a transport is given at a time, against a transport that only counts."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.host.transport_stream import HANDED_BYTES_MAX, TransportStream
from millbeck.kernel.environment import FileSlice


class CountingTransport(asyncio.Transport):
    """Buffers everything when ``takes`` is False, nothing when it is True."""

    def __init__(self, *, takes: bool = False) -> None:
        super().__init__()
        self.takes = takes
        self.buffered = 0
        self.written = bytearray()
        self.calls: list[str] = []
        self.limits: tuple[int | None, int | None] = (None, None)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits = (high, low)

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data
        if not self.takes:
            self.buffered += len(data)

    def is_closing(self) -> bool:
        return bool(self.calls)

    def close(self) -> None:
        self.calls.append("close")

    def abort(self) -> None:
        self.calls.append("abort")


class MemoryFile:
    def __init__(self, size: int) -> None:
        self.size = size

    def read(self, size: int, position: int) -> bytes:
        return b"f" * max(0, min(size, self.size - position))


def _slice(size: int, released: list[int], held: int | None = None) -> FileSlice:
    file: Any = MemoryFile(size if held is None else held)
    return FileSlice(file, 0, size, lambda: released.append(size))


def test_pauses_mark_exactly_when_something_is_buffered() -> None:
    transport = CountingTransport()
    TransportStream(transport)
    assert transport.limits == (0, 0)


def test_about_a_mebibyte_is_handed_over_at_a_time() -> None:
    transport = CountingTransport()
    released: list[int] = []
    drained: list[int] = []
    stream = TransportStream(transport)
    stream.on_drained(lambda: drained.append(transport.buffered))
    size = 5 << 20
    stream.send([b"head", _slice(size, released), b"tail"])
    handed = []
    while transport.buffered:
        handed.append(transport.buffered)
        assert stream.queued_bytes == size + 8 - len(transport.written) + transport.buffered
        transport.buffered = 0
        stream.resume_writing()
    assert max(handed) <= HANDED_BYTES_MAX + (256 << 10)
    assert transport.written == b"head" + b"f" * size + b"tail"
    assert released == [size]
    assert drained == [0]


def test_a_transport_that_takes_everything_gets_its_share_per_turn() -> None:
    async def scenario() -> Any:
        transport = CountingTransport(takes=True)
        released: list[int] = []
        drained: list[int] = []
        stream = TransportStream(transport)
        stream.on_drained(lambda: drained.append(len(transport.written)))
        stream.send([_slice(3 << 20, released)])
        turns = [len(transport.written)]
        while not drained:
            await asyncio.sleep(0)
            turns.append(len(transport.written))
        return turns, drained, released

    turns, drained, released = asyncio.run(scenario())
    assert turns[0] == 1 << 20
    assert turns == sorted(turns)
    assert drained == [3 << 20]
    assert released == [3 << 20]


def test_a_resume_without_anything_queued_is_nothing() -> None:
    transport, drained = CountingTransport(takes=True), []
    stream = TransportStream(transport)
    stream.on_drained(lambda: drained.append(1))
    stream.resume_writing()
    stream.send([b"small"])
    stream.resume_writing()
    assert drained == []


def test_a_slice_that_shrank_aborts_and_releases_all() -> None:
    transport = CountingTransport()
    released: list[int] = []
    stream = TransportStream(transport)
    stream.send([_slice(1000, released, held=10), _slice(5, released)])
    assert transport.calls == ["abort"]
    assert released == [1000, 5]


def test_closing_waits_for_the_transport() -> None:
    transport = CountingTransport()
    released: list[int] = []
    stream = TransportStream(transport)
    stream.send([_slice(2 << 20, released)])
    stream.close_when_drained()
    assert transport.calls == []
    stream.send([_slice(7, released)])
    assert released == [7]
    while transport.buffered:
        transport.buffered = 0
        stream.resume_writing()
    assert transport.calls == ["close"]
    assert released == [7, 2 << 20]


@pytest.mark.parametrize("end", ["closed", "closing transport"])
def test_the_end_releases_what_is_queued(end: Any) -> None:
    transport = CountingTransport()
    released: list[int] = []
    stream = TransportStream(transport)
    stream.send([_slice(3 << 20, released), _slice(9, released)])
    if end == "closed":
        stream.closed()
    else:
        transport.abort()
        transport.buffered = 0
        stream.resume_writing()
    assert released == [3 << 20, 9]
    stream.resume_writing()
    stream.send([_slice(4, released)])
    assert released == [3 << 20, 9, 4]
