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


class FakeOutlet:
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
        self.made = FakeOutlet()

    def outlet(self, transport: Any, *, buffers: SocketBuffers) -> FakeOutlet:
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
    def outlet(self) -> FakeOutlet:
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
    house = ConnectionHarness()
    house.send(request(1), request(2), request(3))
    first, second, third = house.requests.calls
    third.complete((b"three",))
    first.complete((b"one",))
    house.turn()
    assert house.outlet.sent == [b"one"]
    second.complete((b"two",))
    house.turn()
    assert house.outlet.sent == [b"one", b"two", b"three"]


def test_what_arrives_together_shares_the_wall_clock_and_what_comes_later_asks_again() -> None:
    house = ConnectionHarness()
    seen: list[int] = []

    def look(call: Call) -> None:
        seen.append(call.connection.wall_ms)
        call.connection.wall_ms = 17
        if len(seen) == 3:
            call.hold()

    house.requests.on_request = look
    house.send(request(1), request(2))
    house.send(request(3), request(4))
    house.requests.calls[2].complete((b"three",))
    house.turn()
    assert seen == [-1, 17, -1, -1]


def test_a_held_call_keeps_the_bytes_behind_it_unread_until_it_is_answered() -> None:
    house = ConnectionHarness()
    house.requests.on_request = Call.hold
    house.send(request(1), request(2))
    assert house.requests.frames == [request(1)]
    assert house.transport.is_paused
    house.requests.on_request = lambda call: None
    house.requests.calls[0].complete((b"one",))
    house.turn()
    assert house.requests.frames == [request(1), request(2)]
    assert not house.transport.is_paused


def test_a_held_connection_with_nothing_behind_is_still_read_once() -> None:
    house = ConnectionHarness()
    house.requests.on_request = Call.hold
    house.send(request(1))
    assert not house.transport.is_paused
    house.send(request(2), request(3))
    assert house.requests.frames == [request(1)]
    assert house.transport.is_paused
    house.requests.calls[0].complete((b"one",))
    house.turn()
    assert house.requests.frames == [request(1), request(2)]
    assert house.transport.is_paused
    house.requests.calls[1].complete((b"two",))
    house.turn()
    assert house.requests.frames == [request(1), request(2), request(3)]
    assert not house.transport.is_paused
    house.requests.on_request = lambda call: None
    house.requests.calls[2].complete((b"three",))
    house.turn()
    house.send(request(4))
    assert house.requests.frames[3:] == [request(4)]


def test_a_held_connection_keeps_half_a_request_whole() -> None:
    house = ConnectionHarness()
    house.requests.on_request = Call.hold
    house.send(request(1))
    following = framed(request(2))
    house.receive(following[:5])
    assert house.transport.is_paused
    house.requests.on_request = lambda call: None
    house.requests.calls[0].complete((b"one",))
    house.turn()
    assert not house.transport.is_paused
    house.receive(following[5:])
    assert house.requests.frames == [request(1), request(2)]


def test_a_released_call_lets_the_next_request_in_before_its_own_answer() -> None:
    house = ConnectionHarness()
    house.requests.on_request = Call.hold
    house.send(request(1), request(2))
    house.requests.on_request = lambda call: None
    house.requests.calls[0].release()
    house.turn()
    assert house.requests.frames == [request(1), request(2)]
    assert house.outlet.sent == []


def test_at_most_64_requests_are_unanswered() -> None:
    house = ConnectionHarness()
    house.send(*(request(number) for number in range(UNANSWERED_MAX + 5)))
    assert len(house.requests.calls) == UNANSWERED_MAX == 64
    assert house.transport.is_paused
    house.requests.calls[0].complete((b"x",))
    house.turn()
    assert len(house.requests.calls) == UNANSWERED_MAX + 1


def test_a_reader_that_does_not_read_is_not_asked_for_more_requests() -> None:
    house = ConnectionHarness()
    house.send(request(1))
    house.outlet.queued_bytes = OUTPUT_HIGH_WATER_BYTES + 1
    house.requests.calls[0].complete((b"large",))
    house.turn()
    assert house.transport.is_paused
    house.outlet.queued_bytes = 0
    house.outlet.drained()
    assert not house.transport.is_paused


def test_a_call_is_answered_once() -> None:
    house = ConnectionHarness()
    house.send(request(1))
    house.requests.calls[0].complete((b"x",))
    with pytest.raises(AssertionError, match="completed twice"):
        house.requests.calls[0].complete((b"x",))


def test_what_has_no_reply_ends_the_connection() -> None:
    house = ConnectionHarness()

    def refuse(call: Call) -> None:
        raise CloseConnection("nonsense")

    house.requests.on_request = refuse
    house.send(request(1), request(2))
    assert house.transport.is_aborted
    assert house.requests.frames == [request(1)]


@pytest.mark.parametrize("size", [-1, 0, 3, 10_001, 2**31 - 1])
def test_a_frame_out_of_bounds_ends_the_connection(size: int) -> None:
    house = ConnectionHarness()
    buffer = house.connection.get_buffer(-1)
    buffer[:4] = struct.pack(">i", size)
    house.connection.buffer_updated(4)
    assert house.transport.is_aborted


def test_slices_of_unsent_replies_are_released_when_the_connection_is_lost() -> None:
    house = ConnectionHarness()
    house.send(request(1), request(2), request(3))
    released: list[int] = []
    slices = [FileSlice(cast(Any, None), 0, 1, partial(released.append, number)) for number in (2, 3)]
    house.requests.calls[1].complete((slices[0],))
    house.connection.connection_lost(None)
    assert released == [2]
    house.requests.calls[2].complete((slices[1],))
    assert released == [2, 3]
    assert house.outlet.is_closed


def test_those_who_wait_are_told_once_that_the_connection_is_lost() -> None:
    house = ConnectionHarness()
    told: list[str] = []

    def first() -> None:
        told.append("first")

    def second() -> None:
        told.append("second")

    house.connection.when_lost(first)
    house.connection.when_lost(second)
    house.connection.forget_when_lost(second)
    house.connection.connection_lost(None)
    assert told == ["first"]


def test_connections_above_the_limits_are_refused_and_counted_back() -> None:
    house = ConnectionHarness(connections_max=2, per_ip_max=10)
    second, third = FakeTransport(), FakeTransport()
    kept = house.connect(second)
    house.connect(third).connection_lost(None)
    assert not second.is_aborted
    assert third.is_aborted
    kept.connection_lost(None)
    fourth = FakeTransport()
    house.connect(fourth)
    assert not fourth.is_aborted


def test_connections_of_one_address_have_their_own_limit() -> None:
    house = ConnectionHarness(per_ip_max=1)
    second = FakeTransport()
    house.connect(second)
    assert second.is_aborted


class TestOverdue:
    def ask(self, house: ConnectionHarness) -> str | None:
        return house.connection.overdue(house.now, idle_max=600, frame_max=30, stall_max=60)

    def test_an_idle_connection_is(self) -> None:
        house = ConnectionHarness()
        house.now += 599
        assert self.ask(house) is None
        house.now += 2
        assert "connections.max.idle.ms" in str(self.ask(house))

    def test_one_with_a_parked_request_is_not_idle(self) -> None:
        house = ConnectionHarness()
        house.send(request(1))
        house.now += 601
        assert self.ask(house) is None

    def test_half_a_frame_is_after_thirty_seconds(self) -> None:
        house = ConnectionHarness()
        buffer = house.connection.get_buffer(-1)
        buffer[:6] = struct.pack(">i", 100) + b"xx"
        del buffer
        house.connection.buffer_updated(6)
        house.now += 31
        assert "inside a request" in str(self.ask(house))

    def test_a_reader_that_takes_nothing_is_after_a_minute_and_a_slow_one_is_not(self) -> None:
        house = ConnectionHarness()
        house.outlet.queued_bytes = 1000
        assert self.ask(house) is None
        house.now += 50
        house.outlet.queued_bytes = 900
        assert self.ask(house) is None
        house.now += 50
        assert self.ask(house) is None
        house.now += 11
        assert "did not read" in str(self.ask(house))


def test_a_connection_that_comes_before_the_node_is_ready_waits() -> None:
    house = ConnectionHarness()
    house.listener.is_open = False
    early = FakeTransport()
    house.connect(early)
    assert early.is_paused
    house.listener.open()
    assert not early.is_paused


def test_what_is_read_before_the_node_is_ready_is_looked_at_when_it_is() -> None:
    house = ConnectionHarness()
    house.listener.is_open = False
    early = FakeTransport()
    connection = house.connect(early)
    frame = b"\x00\x00\x00\x0a" + b"0123456789"
    connection.get_buffer(-1)[: len(frame)] = frame
    connection.buffer_updated(len(frame))
    assert house.requests.frames == []
    assert early.is_paused
    house.listener.open()
    assert house.requests.frames == [frame[4:]]
    assert not early.is_paused


def test_draining_answers_what_is_open_and_then_closes() -> None:
    house = ConnectionHarness()
    house.send(request(1))
    house.connection.close_when_answered()
    house.turn()
    assert not house.outlet.closes_when_drained
    house.requests.calls[0].complete((b"one",))
    house.turn()
    assert house.outlet.sent == [b"one"]
    assert house.outlet.closes_when_drained


def test_pipelined_requests_wait_while_large_replies_of_the_turn_are_not_sent() -> None:
    house = ConnectionHarness()
    house.requests.on_request = lambda call: call.complete((bytes(OUTPUT_HIGH_WATER_BYTES // 2 + 1),))
    house.send(*map(request, range(10)))
    assert len(house.requests.frames) == 2
    house.turn()
    assert len(house.outlet.sent) == 2
    assert len(house.requests.frames) == 4


def test_a_request_that_was_kept_and_is_answered_is_not_taken_for_one_without_progress() -> None:
    house = ConnectionHarness()
    house.requests.on_request = Call.hold
    house.send(request(1), request(2))
    house.requests.on_request = lambda call: call.complete((b"second",))
    house.requests.calls[0].complete((b"first",))
    house.turn()
    house.turn()
    assert house.outlet.sent == [b"first", b"second"]
    limits = {"idle_max": 600.0, "frame_max": 30.0, "stall_max": 60.0}
    assert house.connection.overdue(house.now + 31, **limits) is None
    assert "idle" in (house.connection.overdue(house.now + 601, **limits) or "")


def test_replies_that_wait_behind_another_count_until_they_leave() -> None:
    house = ConnectionHarness()
    house.requests.on_request = lambda call: call.complete((b"x" * 700_000,)) if len(house.requests.calls) > 1 else None
    house.send(request(1), request(2))
    house.turn()
    assert not house.transport.is_paused
    house.send(request(3), request(4))
    assert len(house.requests.calls) == 3
    house.turn()
    assert house.transport.is_paused
    house.requests.calls[0].complete((b"one",))
    house.turn()
    assert len(house.requests.calls) == 4


def test_the_connection_that_holds_the_most_unread_replies_is_closed_when_all_together_hold_too_much() -> None:
    house = ConnectionHarness()
    replies = house.listener.replies
    replies.limit_bytes = 1000
    house.outlet.takes_nothing = True
    house.send(request(1))
    house.requests.calls[0].complete((b"x" * 800,))
    house.turn()
    assert (replies.held_bytes, house.transport.is_aborted) == (800, False)
    house.send(request(2))
    house.requests.calls[1].complete((b"x" * 300,))
    house.turn()
    assert (replies.held_bytes, replies.closed_count, house.transport.is_aborted) == (0, 1, True)
    house.connection.connection_lost(None)
    assert replies.held_bytes == 0


def test_replies_that_were_taken_no_longer_count() -> None:
    house = ConnectionHarness()
    house.outlet.takes_nothing = True
    house.send(request(1))
    house.requests.calls[0].complete((b"x" * 800,))
    house.turn()
    house.outlet.queued_bytes = 500
    assert house.connection.overdue(101.0, idle_max=600, frame_max=60, stall_max=60) is None
    assert house.listener.replies.held_bytes == 500
    house.outlet.queued_bytes = 0
    house.connection._drained()
    assert house.listener.replies.held_bytes == 0


def alone(house: ConnectionHarness) -> None:
    """From now on the connection is the only one that wakes the loop."""
    house.connection._batch = EventBatch(house.scheduled.append, house.errors.append, lambda: True)


def test_a_connection_that_is_alone_takes_what_has_come_meanwhile() -> None:
    house = ConnectionHarness()
    house.requests.on_request = lambda call: call.complete((b"ok",))
    alone(house)
    house.outlet.arriving = [framed(request(number)) for number in range(2, 10)]
    house.send(request(1))
    assert house.requests.frames == [request(number) for number in range(1, 2 + READS_ON_MAX)]
    assert len(house.outlet.sent) == 1 + READS_ON_MAX
    house.send(request(50))
    assert house.outlet.arriving == []


def test_looking_in_vain_is_done_less_and_less_often() -> None:
    house = ConnectionHarness()
    house.requests.on_request = lambda call: call.complete((b"ok",))
    alone(house)
    for number in range(100):
        house.send(request(number))
    assert 5 <= house.outlet.looks <= 8


def test_a_held_connection_does_not_look() -> None:
    house = ConnectionHarness()
    house.requests.on_request = lambda call: call.hold()
    alone(house)
    house.send(request(1))
    assert house.outlet.looks == 0


@pytest.mark.parametrize(
    ("size", "is_long"), [(2000, False), (LONG_REQUEST_BYTES - 4, False), (LONG_REQUEST_BYTES, True)]
)
def test_the_outlet_hears_of_requests_that_are_longer_than_a_socket_holds(size: int, is_long: bool) -> None:
    house = ConnectionHarness(frame_bytes_max=1_000_000)
    data = framed(b"x" * size)
    while data and not house.requests.frames:
        buffer = house.connection.get_buffer(-1)
        count = min(len(buffer), len(data), 1500)
        buffer[:count] = data[:count]
        del buffer
        house.connection.buffer_updated(count)
        data = data[count:]
    assert [len(frame) for frame in house.requests.frames] == [size]
    assert house.outlet.expects_long_requests is is_long


def test_a_lost_connection_lets_go_of_the_request_that_was_coming() -> None:
    house = ConnectionHarness(frame_bytes_max=1_000_000)
    house.receive(struct.pack(">i", 500_000) + b"x" * 3000)
    assert house.connection._reader.held_bytes > 0
    house.connection.connection_lost(None)
    assert house.connection._reader.held_bytes == 0
