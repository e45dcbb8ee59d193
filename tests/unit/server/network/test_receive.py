"""Frames come out whole and in order, however the bytes were cut, and lying lengths cost no memory."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.server.network.receive import (
    FIRST_OWN_BUFFER_BYTES,
    SPARE_BUFFER_BYTES_MAX,
    FrameReader,
    FrameTooLarge,
    SharedBuffer,
)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


class Client:
    """Feeds a reader as asyncio's transport does, in pieces of any size."""

    def __init__(
        self, *, shared_bytes: int = 64, frame_bytes_max: int = 10_000_000, shared: SharedBuffer | None = None
    ) -> None:
        """One that shares its buffer with others goes on at once when its handler has stopped."""
        self.frames: list[bytes] = []
        self.goes_on = True
        self.resumes = shared is not None
        self.shared = shared or SharedBuffer(shared_bytes, check_views=True)
        self.reader = FrameReader(self.shared, frame_bytes_max, self.handle)

    def handle(self, frame: memoryview) -> bool:
        self.frames.append(bytes(frame))
        return self.goes_on

    def feed(self, data: bytes) -> None:
        while data:
            buffer = self.reader.buffer_for_receive()
            count = min(len(buffer), len(data))
            assert count > 0
            buffer[:count] = data[:count]
            data = data[count:]
            del buffer
            goes_on = self.reader.received(count)
            self.shared.after_dispatch()
            while self.resumes and not goes_on:
                goes_on = self.reader.resume()


@settings(max_examples=150, deadline=None)
@given(
    payloads=st.lists(st.binary(min_size=8, max_size=300), max_size=12),
    cuts=st.lists(st.integers(1, 200), min_size=1, max_size=20),
    shared_bytes=st.integers(4, 128),
)
def test_frames_are_the_same_however_the_stream_is_cut(
    payloads: list[bytes], cuts: list[int], shared_bytes: int
) -> None:
    client = Client(shared_bytes=shared_bytes)
    stream = b"".join(framed(payload) for payload in payloads)
    position = index = 0
    while position < len(stream):
        size = cuts[index % len(cuts)]
        client.feed(stream[position : position + size])
        position += size
        index += 1
    assert client.frames == payloads
    assert not client.reader.is_inside_frame
    assert client.reader.held_bytes == 0


@settings(max_examples=100, deadline=None)
@given(payloads=st.lists(st.binary(min_size=8, max_size=40), min_size=1, max_size=10))
def test_a_handler_that_stops_gets_the_rest_one_at_a_time(payloads: list[bytes]) -> None:
    client = Client(shared_bytes=1024)
    client.goes_on = False
    client.feed(b"".join(framed(payload) for payload in payloads))
    assert client.frames == payloads[:1]
    for _ in payloads[1:]:
        client.reader.resume()
    assert client.frames == payloads


def test_frames_that_wait_are_not_moved_for_each_one_that_is_handled() -> None:
    client = Client(shared_bytes=65536)
    client.goes_on = False
    client.feed(framed(b"12345678") * 5000)
    kept = client.reader._own
    for _ in range(4000):
        client.reader.resume()
    assert client.reader._own is kept
    assert len(client.frames) == 4001


@pytest.mark.parametrize("size", [-1, 0, 7, 1001, 2**31 - 1])
def test_a_length_out_of_bounds_is_refused_as_soon_as_it_is_seen(size: int) -> None:
    client = Client(shared_bytes=1024, frame_bytes_max=1000)
    with pytest.raises(FrameTooLarge):
        client.feed(struct.pack(">i", size))


def test_a_length_split_over_two_reads_is_refused_too() -> None:
    client = Client(frame_bytes_max=1000)
    client.feed(b"\x7f\xff")
    with pytest.raises(FrameTooLarge):
        client.feed(b"\xff\xff")


def test_memory_grows_with_what_was_received_not_with_what_was_promised() -> None:
    client = Client(shared_bytes=4096, frame_bytes_max=2**31 - 1)
    client.feed(struct.pack(">i", 100_000_000) + b"x" * 1000)
    assert len(client.reader.buffer_for_receive()) <= FIRST_OWN_BUFFER_BYTES


def test_bytes_behind_a_large_frame_are_not_read_into_its_buffer() -> None:
    client = Client(shared_bytes=64)
    large, small = b"a" * 1000, b"b" * 10
    client.feed(framed(large) + framed(small))
    assert client.frames == [large, small]


def test_a_view_that_escapes_the_handler_is_an_error_in_strict_mode() -> None:
    escaped: list[memoryview] = []
    shared = SharedBuffer(64, check_views=True)

    def keep(frame: memoryview) -> bool:
        escaped.append(frame[:4])
        return True

    reader = FrameReader(shared, 1000, keep)
    data = framed(b"12345678")
    reader.buffer_for_receive()[: len(data)] = data
    reader.received(len(data))
    with pytest.raises(BufferError):
        shared.after_dispatch()


def test_a_long_frame_is_received_into_the_buffer_that_the_one_before_left() -> None:
    shared = SharedBuffer(64)
    first = shared.take(100_000)
    shared.give_back(first)
    assert shared.take(60_000) is first
    assert shared.take(60_000) is not first


def test_the_last_buffer_is_kept_unless_it_is_too_large_or_too_small_to_be_worth_it() -> None:
    shared = SharedBuffer(64)
    large, small = shared.take(100_000), shared.take(80_000)
    for buffer in (large, small, bytearray(SPARE_BUFFER_BYTES_MAX + 1), bytearray(FIRST_OWN_BUFFER_BYTES)):
        shared.give_back(buffer)
    assert shared.take(70_000) is small


def test_the_kept_buffer_is_not_for_frames_that_may_stay_small() -> None:
    shared = SharedBuffer(64)
    kept = shared.take(1_000_000)
    shared.give_back(kept)
    assert len(shared.take(FIRST_OWN_BUFFER_BYTES)) == FIRST_OWN_BUFFER_BYTES
    assert shared.take(250_000) is kept


def test_a_view_that_escapes_a_long_frame_is_an_error_in_strict_mode() -> None:
    escaped: list[memoryview] = []
    client = Client(shared_bytes=64)

    def keep(frame: memoryview) -> bool:
        escaped.append(frame[:4])
        return True

    client.reader = FrameReader(client.shared, 100_000, keep)
    with pytest.raises(BufferError):
        client.feed(framed(b"x" * 1000))


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 2), st.integers(8, 300_000), st.sampled_from([1.0, 0.5, 0.3, 0.1])),
        min_size=3,
        max_size=12,
    ),
    stops=st.sets(st.integers(0, 12)),
)
def test_connections_that_share_the_kept_buffer_do_not_see_each_others_bytes(
    steps: list[tuple[int, int, float]], stops: set[int]
) -> None:
    """Frames of three connections come in parts, in turns; some handlers stop, and the connection goes on later."""
    shared = SharedBuffer(100_000, check_views=True)
    clients = [Client(shared=shared) for _ in range(3)]
    expected: list[list[bytes]] = [[], [], []]
    left = [b"", b"", b""]
    for number, (which, size, share) in enumerate(steps):
        client = clients[which]
        client.goes_on = number not in stops
        frame = bytes([65 + number]) * size
        expected[which].append(frame)
        data = left[which] + framed(frame)
        cut = int(len(data) * share)
        left[which] = data[cut:]
        client.feed(data[:cut])
    for client, data, frames in zip(clients, left, expected, strict=True):
        client.goes_on = True
        client.feed(data)
        assert client.frames == frames


def test_what_the_kept_buffer_held_before_does_not_show() -> None:
    client = Client(shared_bytes=64)
    payloads = [b"a" * 90_000, b"b" * 70_000, b"c" * 120_000, b"d" * 20]
    client.feed(b"".join(map(framed, payloads)))
    assert client.frames == payloads
