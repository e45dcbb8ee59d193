"""Requests in order, replies in order, and a connection that waits when it must."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, cast

import pytest

from millbeck.kernel.environment import FileSlice, Part, SocketBuffers
from millbeck.kernel.event_batch import EventBatch
from millbeck.kernel.metrics import Registry
from millbeck.server.config.addresses import ListenerAddress
from millbeck.server.network.call import Call
from millbeck.server.network.connection import (
    LONG_REQUEST_BYTES,
    OUTPUT_HIGH_WATER_BYTES,
    READS_ON_MAX,
    UNANSWERED_MAX,
    CloseConnection,
    Connection,
)
from millbeck.server.network.listener import ConnectionLimits, Listener, ListenerContext
from millbeck.server.network.receive import SharedBuffer
from millbeck.server.network.request_metrics import RequestMetrics
from tests.unit.server.harness.method_patches import needs_sources

pytestmark = needs_sources


class FakeTransport:
    def __init__(self) -> None:
        self.is_aborted = False
        self.is_paused = False

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("10.0.0.9", 5000), "sockname": ("127.0.0.1", 9092)}[name]

    def is_closing(self) -> bool:
        return self.is_aborted

    def abort(self) -> None:
        self.is_aborted = True

    def pause_reading(self) -> None:
        self.is_paused = True

    def resume_reading(self) -> None:
        self.is_paused = False


class FakeStream:
    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.queued_bytes = 0
        self.transport: Any = None
        self.drained: Callable[[], None] = lambda: None
        self.is_closed = False
        self.closes_when_drained = False
        self.takes_nothing = False
        self.arriving: list[bytes] = []
        self.looks = 0
        self.expects_long_requests = False

    def send(self, parts: Sequence[Part]) -> None:
        self.sent += [bytes(cast(bytes, part)) for part in parts]
        if self.takes_nothing:
            self.queued_bytes += sum(len(cast(bytes, part)) for part in parts)

    def on_drained(self, callback: Callable[[], None]) -> None:
        self.drained = callback

    def resume_writing(self) -> None: ...

    def expect_long_requests(self) -> None:
        self.expects_long_requests = True

    def begin_reading(self, get_buffer: Callable[[int], memoryview], buffer_updated: Callable[[int], None]) -> None: ...

    def pause_reading(self) -> None:
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        self.transport.resume_reading()

    def close_when_drained(self) -> None:
        self.closes_when_drained = True

    def closed(self) -> None:
        self.is_closed = True

    def receive(self, buffer: memoryview) -> int:
        self.looks += 1
        if not self.arriving:
            return 0
        data = self.arriving.pop(0)
        buffer[: len(data)] = data
        return len(data)


class FakeNetwork:
    def __init__(self) -> None:
        self.made = FakeStream()

    def connection_stream(self, transport: Any, *, buffers: SocketBuffers) -> FakeStream:
        self.made.transport = transport
        return self.made


class FakeHandler:
    statistics = RequestMetrics(Registry()).statistics(0, "Produce")


class Requests:
    """Makes a call of each frame; ``on_request`` decides what becomes of it."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.frames: list[bytes] = []
        self.on_request: Callable[[Call], None] = lambda call: None

    def handle(self, connection: Connection, frame: memoryview) -> None:
        self.frames.append(bytes(frame))
        call = Call(cast(Any, None), connection, cast(Any, FakeHandler()), 0, 0, None, 0.0)
        connection.enqueue(call)
        self.calls.append(call)
        self.on_request(call)


class ConnectionHarness:
    """One listener with one connection, on a loop that the test turns by hand."""

    def __init__(self, *, connections_max: int = 10, per_ip_max: int = 10, frame_bytes_max: int = 10_000) -> None:
        self.scheduled: list[Callable[[], None]] = []
        self.errors: list[Exception] = []
        self.requests = Requests()
        self.network = FakeNetwork()
        self.now = 100.0
        limits = ConnectionLimits(
            connections_max=connections_max, connections_max_per_ip=per_ip_max, overrides_per_ip={}
        )
        self.listener = Listener(
            ListenerAddress(name="PLAINTEXT", host="", port=0, protocol="PLAINTEXT"),
            cast(Any, self.requests),
            ListenerContext(
                network=cast(Any, self.network),
                turn=EventBatch(self.scheduled.append, self.errors.append),
                now=lambda: self.now,
                shared_buffer=SharedBuffer(4096, check_views=True),
                frame_bytes_max=frame_bytes_max,
                limits=limits,
            ),
        )
        self.listener.open()
        self.transport = FakeTransport()
        self.connection = self.connect(self.transport)

    def connect(self, transport: FakeTransport) -> Connection:
        connection = self.listener._connection()
        connection.connection_made(cast(Any, transport))
        return connection

    @property
    def stream(self) -> FakeStream:
        return self.network.made

    def send(self, *payloads: bytes) -> None:
        self.receive(b"".join(map(framed, payloads)))

    def receive(self, data: bytes) -> None:
        buffer = self.connection.get_buffer(-1)
        buffer[: len(data)] = data
        del buffer
        self.connection.buffer_updated(len(data))

    def turn(self) -> None:
        scheduled = list(self.scheduled)
        self.scheduled.clear()
        for callback in scheduled:
            callback()
        assert self.errors == []


def request(number: int) -> bytes:
    return b"request-%03d" % number


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def test_replies_leave_in_the_order_of_requests_whatever_the_order_of_answers() -> None:
    harness = ConnectionHarness()
    harness.send(request(1), request(2), request(3))
    first, second, third = harness.requests.calls
    third.complete((b"three",))
    first.complete((b"one",))
    harness.turn()
    assert harness.stream.sent == [b"one"]
    second.complete((b"two",))
    harness.turn()
    assert harness.stream.sent == [b"one", b"two", b"three"]


def test_what_arrives_together_shares_the_wall_clock_and_what_comes_later_asks_again() -> None:
    harness = ConnectionHarness()
    seen: list[int] = []

    def look(call: Call) -> None:
        seen.append(call.connection.wall_ms)
        call.connection.wall_ms = 17
        if len(seen) == 3:
            call.hold()

    harness.requests.on_request = look
    harness.send(request(1), request(2))
    harness.send(request(3), request(4))
    harness.requests.calls[2].complete((b"three",))
    harness.turn()
    assert seen == [-1, 17, -1, -1]


def test_a_held_call_keeps_the_bytes_behind_it_unread_until_it_is_answered() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = Call.hold
    harness.send(request(1), request(2))
    assert harness.requests.frames == [request(1)]
    assert harness.transport.is_paused
    harness.requests.on_request = lambda call: None
    harness.requests.calls[0].complete((b"one",))
    harness.turn()
    assert harness.requests.frames == [request(1), request(2)]
    assert not harness.transport.is_paused


def test_a_held_connection_with_nothing_behind_is_still_read_once() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = Call.hold
    harness.send(request(1))
    assert not harness.transport.is_paused
    harness.send(request(2), request(3))
    assert harness.requests.frames == [request(1)]
    assert harness.transport.is_paused
    harness.requests.calls[0].complete((b"one",))
    harness.turn()
    assert harness.requests.frames == [request(1), request(2)]
    assert harness.transport.is_paused
    harness.requests.calls[1].complete((b"two",))
    harness.turn()
    assert harness.requests.frames == [request(1), request(2), request(3)]
    assert not harness.transport.is_paused
    harness.requests.on_request = lambda call: None
    harness.requests.calls[2].complete((b"three",))
    harness.turn()
    harness.send(request(4))
    assert harness.requests.frames[3:] == [request(4)]


def test_a_held_connection_keeps_half_a_request_whole() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = Call.hold
    harness.send(request(1))
    following = framed(request(2))
    harness.receive(following[:5])
    assert harness.transport.is_paused
    harness.requests.on_request = lambda call: None
    harness.requests.calls[0].complete((b"one",))
    harness.turn()
    assert not harness.transport.is_paused
    harness.receive(following[5:])
    assert harness.requests.frames == [request(1), request(2)]


def test_a_released_call_lets_the_next_request_in_before_its_own_answer() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = Call.hold
    harness.send(request(1), request(2))
    harness.requests.on_request = lambda call: None
    harness.requests.calls[0].release()
    harness.turn()
    assert harness.requests.frames == [request(1), request(2)]
    assert harness.stream.sent == []


def test_at_most_64_requests_are_unanswered() -> None:
    harness = ConnectionHarness()
    harness.send(*(request(number) for number in range(UNANSWERED_MAX + 5)))
    assert len(harness.requests.calls) == UNANSWERED_MAX == 64
    assert harness.transport.is_paused
    harness.requests.calls[0].complete((b"x",))
    harness.turn()
    assert len(harness.requests.calls) == UNANSWERED_MAX + 1


def test_a_reader_that_does_not_read_is_not_asked_for_more_requests() -> None:
    harness = ConnectionHarness()
    harness.send(request(1))
    harness.stream.queued_bytes = OUTPUT_HIGH_WATER_BYTES + 1
    harness.requests.calls[0].complete((b"large",))
    harness.turn()
    assert harness.transport.is_paused
    harness.stream.queued_bytes = 0
    harness.stream.drained()
    assert not harness.transport.is_paused


def test_a_call_is_answered_once() -> None:
    harness = ConnectionHarness()
    harness.send(request(1))
    harness.requests.calls[0].complete((b"x",))
    with pytest.raises(AssertionError, match="completed twice"):
        harness.requests.calls[0].complete((b"x",))


def test_what_has_no_reply_ends_the_connection() -> None:
    harness = ConnectionHarness()

    def refuse(call: Call) -> None:
        raise CloseConnection("nonsense")

    harness.requests.on_request = refuse
    harness.send(request(1), request(2))
    assert harness.transport.is_aborted
    assert harness.requests.frames == [request(1)]


@pytest.mark.parametrize("size", [-1, 0, 3, 10_001, 2**31 - 1])
def test_a_frame_out_of_bounds_ends_the_connection(size: int) -> None:
    harness = ConnectionHarness()
    buffer = harness.connection.get_buffer(-1)
    buffer[:4] = struct.pack(">i", size)
    harness.connection.buffer_updated(4)
    assert harness.transport.is_aborted


def test_slices_of_unsent_replies_are_released_when_the_connection_is_lost() -> None:
    harness = ConnectionHarness()
    harness.send(request(1), request(2), request(3))
    released: list[int] = []
    slices = [FileSlice(cast(Any, None), 0, 1, partial(released.append, number)) for number in (2, 3)]
    harness.requests.calls[1].complete((slices[0],))
    harness.connection.connection_lost(None)
    assert released == [2]
    harness.requests.calls[2].complete((slices[1],))
    assert released == [2, 3]
    assert harness.stream.is_closed


def test_those_who_wait_are_told_once_that_the_connection_is_lost() -> None:
    harness = ConnectionHarness()
    told: list[str] = []

    def first() -> None:
        told.append("first")

    def second() -> None:
        told.append("second")

    harness.connection.when_lost(first)
    harness.connection.when_lost(second)
    harness.connection.forget_when_lost(second)
    harness.connection.connection_lost(None)
    assert told == ["first"]


def test_connections_above_the_limits_are_refused_and_counted_back() -> None:
    harness = ConnectionHarness(connections_max=2, per_ip_max=10)
    second, third = FakeTransport(), FakeTransport()
    kept = harness.connect(second)
    harness.connect(third).connection_lost(None)
    assert not second.is_aborted
    assert third.is_aborted
    kept.connection_lost(None)
    fourth = FakeTransport()
    harness.connect(fourth)
    assert not fourth.is_aborted


def test_connections_of_one_address_have_their_own_limit() -> None:
    harness = ConnectionHarness(per_ip_max=1)
    second = FakeTransport()
    harness.connect(second)
    assert second.is_aborted


class TestOverdue:
    def ask(self, harness: ConnectionHarness) -> str | None:
        return harness.connection.overdue(harness.now, idle_max=600, frame_max=30, stall_max=60)

    def test_an_idle_connection_is(self) -> None:
        harness = ConnectionHarness()
        harness.now += 599
        assert self.ask(harness) is None
        harness.now += 2
        assert "connections.max.idle.ms" in str(self.ask(harness))

    def test_one_with_a_parked_request_is_not_idle(self) -> None:
        harness = ConnectionHarness()
        harness.send(request(1))
        harness.now += 601
        assert self.ask(harness) is None

    def test_half_a_frame_is_after_thirty_seconds(self) -> None:
        harness = ConnectionHarness()
        buffer = harness.connection.get_buffer(-1)
        buffer[:6] = struct.pack(">i", 100) + b"xx"
        del buffer
        harness.connection.buffer_updated(6)
        harness.now += 31
        assert "inside a request" in str(self.ask(harness))

    def test_a_reader_that_takes_nothing_is_after_a_minute_and_a_slow_one_is_not(self) -> None:
        harness = ConnectionHarness()
        harness.stream.queued_bytes = 1000
        assert self.ask(harness) is None
        harness.now += 50
        harness.stream.queued_bytes = 900
        assert self.ask(harness) is None
        harness.now += 50
        assert self.ask(harness) is None
        harness.now += 11
        assert "did not read" in str(self.ask(harness))


def test_a_connection_that_comes_before_the_node_is_ready_waits() -> None:
    harness = ConnectionHarness()
    harness.listener.is_open = False
    early = FakeTransport()
    harness.connect(early)
    assert early.is_paused
    harness.listener.open()
    assert not early.is_paused


def test_what_is_read_before_the_node_is_ready_is_looked_at_when_it_is() -> None:
    harness = ConnectionHarness()
    harness.listener.is_open = False
    early = FakeTransport()
    connection = harness.connect(early)
    frame = b"\x00\x00\x00\x0a" + b"0123456789"
    connection.get_buffer(-1)[: len(frame)] = frame
    connection.buffer_updated(len(frame))
    assert harness.requests.frames == []
    assert early.is_paused
    harness.listener.open()
    assert harness.requests.frames == [frame[4:]]
    assert not early.is_paused


def test_draining_answers_what_is_open_and_then_closes() -> None:
    harness = ConnectionHarness()
    harness.send(request(1))
    harness.connection.close_when_answered()
    harness.turn()
    assert not harness.stream.closes_when_drained
    harness.requests.calls[0].complete((b"one",))
    harness.turn()
    assert harness.stream.sent == [b"one"]
    assert harness.stream.closes_when_drained


def test_pipelined_requests_wait_while_large_replies_of_the_turn_are_not_sent() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = lambda call: call.complete((bytes(OUTPUT_HIGH_WATER_BYTES // 2 + 1),))
    harness.send(*map(request, range(10)))
    assert len(harness.requests.frames) == 2
    harness.turn()
    assert len(harness.stream.sent) == 2
    assert len(harness.requests.frames) == 4


def test_a_request_that_was_kept_and_is_answered_is_not_taken_for_one_without_progress() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = Call.hold
    harness.send(request(1), request(2))
    harness.requests.on_request = lambda call: call.complete((b"second",))
    harness.requests.calls[0].complete((b"first",))
    harness.turn()
    harness.turn()
    assert harness.stream.sent == [b"first", b"second"]
    limits = {"idle_max": 600.0, "frame_max": 30.0, "stall_max": 60.0}
    assert harness.connection.overdue(harness.now + 31, **limits) is None
    assert "idle" in (harness.connection.overdue(harness.now + 601, **limits) or "")


def test_replies_that_wait_behind_another_count_until_they_leave() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = lambda call: (
        call.complete((b"x" * 700_000,)) if len(harness.requests.calls) > 1 else None
    )
    harness.send(request(1), request(2))
    harness.turn()
    assert not harness.transport.is_paused
    harness.send(request(3), request(4))
    assert len(harness.requests.calls) == 3
    harness.turn()
    assert harness.transport.is_paused
    harness.requests.calls[0].complete((b"one",))
    harness.turn()
    assert len(harness.requests.calls) == 4


def test_the_connection_that_holds_the_most_unread_replies_is_closed_when_all_together_hold_too_much() -> None:
    harness = ConnectionHarness()
    replies = harness.listener.replies
    replies.limit_bytes = 1000
    harness.stream.takes_nothing = True
    harness.send(request(1))
    harness.requests.calls[0].complete((b"x" * 800,))
    harness.turn()
    assert (replies.held_bytes, harness.transport.is_aborted) == (800, False)
    harness.send(request(2))
    harness.requests.calls[1].complete((b"x" * 300,))
    harness.turn()
    assert (replies.held_bytes, replies.closed_count, harness.transport.is_aborted) == (0, 1, True)
    harness.connection.connection_lost(None)
    assert replies.held_bytes == 0


def test_replies_that_were_taken_no_longer_count() -> None:
    harness = ConnectionHarness()
    harness.stream.takes_nothing = True
    harness.send(request(1))
    harness.requests.calls[0].complete((b"x" * 800,))
    harness.turn()
    harness.stream.queued_bytes = 500
    assert harness.connection.overdue(101.0, idle_max=600, frame_max=60, stall_max=60) is None
    assert harness.listener.replies.held_bytes == 500
    harness.stream.queued_bytes = 0
    harness.connection._drained()
    assert harness.listener.replies.held_bytes == 0


def alone(harness: ConnectionHarness) -> None:
    """From now on the connection is the only one that wakes the loop."""
    harness.connection._batch = EventBatch(harness.scheduled.append, harness.errors.append, lambda: True)


def test_a_connection_that_is_alone_takes_what_has_come_meanwhile() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = lambda call: call.complete((b"ok",))
    alone(harness)
    harness.stream.arriving = [framed(request(number)) for number in range(2, 10)]
    harness.send(request(1))
    assert harness.requests.frames == [request(number) for number in range(1, 2 + READS_ON_MAX)]
    assert len(harness.stream.sent) == 1 + READS_ON_MAX
    harness.send(request(50))
    assert harness.stream.arriving == []


def test_looking_in_vain_is_done_less_and_less_often() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = lambda call: call.complete((b"ok",))
    alone(harness)
    for number in range(100):
        harness.send(request(number))
    assert 5 <= harness.stream.looks <= 8


def test_a_held_connection_does_not_look() -> None:
    harness = ConnectionHarness()
    harness.requests.on_request = lambda call: call.hold()
    alone(harness)
    harness.send(request(1))
    assert harness.stream.looks == 0


@pytest.mark.parametrize(
    ("size", "is_long"), [(2000, False), (LONG_REQUEST_BYTES - 4, False), (LONG_REQUEST_BYTES, True)]
)
def test_the_stream_learns_of_requests_that_are_longer_than_a_socket_holds(size: int, is_long: bool) -> None:
    harness = ConnectionHarness(frame_bytes_max=1_000_000)
    data = framed(b"x" * size)
    while data and not harness.requests.frames:
        buffer = harness.connection.get_buffer(-1)
        count = min(len(buffer), len(data), 1500)
        buffer[:count] = data[:count]
        del buffer
        harness.connection.buffer_updated(count)
        data = data[count:]
    assert [len(frame) for frame in harness.requests.frames] == [size]
    assert harness.stream.expects_long_requests is is_long


def test_a_lost_connection_lets_go_of_the_request_that_was_coming() -> None:
    harness = ConnectionHarness(frame_bytes_max=1_000_000)
    harness.receive(struct.pack(">i", 500_000) + b"x" * 3000)
    assert harness.connection._reader.held_bytes > 0
    harness.connection.connection_lost(None)
    assert harness.connection._reader.held_bytes == 0
