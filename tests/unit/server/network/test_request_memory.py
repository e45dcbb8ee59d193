"""Half-received requests share a bounded memory, and somebody can always go on."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.server.network.request_memory import DEFAULT_LIMIT_BYTES, ReplyMemory, RequestMemory


class Connection:
    def __init__(self) -> None:
        self.held = 0
        self.is_reading = True

    def read_on(self) -> None:
        self.is_reading = True

    def hold(self, memory: RequestMemory, size: int) -> None:
        before, self.held = self.held, size
        self.is_reading = memory.changed(self, before, size)


def test_without_a_setting_the_limit_is_256_mib() -> None:
    assert RequestMemory(-1).limit_bytes == DEFAULT_LIMIT_BYTES == 256 * 1024 * 1024
    assert RequestMemory(5).limit_bytes == 5


def test_below_the_limit_nobody_waits() -> None:
    memory = RequestMemory(100)
    connections = [Connection() for _ in range(10)]
    for connection in connections:
        connection.hold(memory, 10)
    assert all(connection.is_reading for connection in connections)


def test_above_it_one_goes_on_and_the_others_follow_when_it_is_done() -> None:
    memory = RequestMemory(100)
    first, second, third = Connection(), Connection(), Connection()
    first.hold(memory, 90)
    second.hold(memory, 90)
    third.hold(memory, 90)
    assert [each.is_reading for each in (first, second, third)] == [True, True, False]
    second.hold(memory, 0)
    assert third.is_reading
    third.hold(memory, 200)
    assert third.is_reading
    first.hold(memory, 95)
    assert not first.is_reading
    third.hold(memory, 0)
    assert first.is_reading
    assert memory.held_bytes == 95


@settings(max_examples=200, deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 60)), max_size=120))
def test_someone_can_always_go_on_and_nothing_is_forgotten(steps: list[tuple[int, int]]) -> None:
    memory = RequestMemory(100)
    connections = [Connection() for _ in range(8)]
    for index, size in steps:
        connection = connections[index]
        if connection.is_reading or size == 0:
            connection.hold(memory, max(size, connection.held) if size else 0)
        assert memory.held_bytes == sum(each.held for each in connections)
        holders = [each for each in connections if each.held]
        assert not holders or any(each.is_reading for each in holders)
    for connection in connections:
        connection.hold(memory, 0)
    assert memory.held_bytes == 0


class Slow:
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def close(self, reason: str) -> None:
        self.reasons.append(reason)


def test_unread_replies_stay_within_the_limit_at_the_cost_of_those_who_hold_the_most() -> None:
    memory = ReplyMemory(100)
    small, large, middle = Slow(), Slow(), Slow()
    memory.holds(small, 10)
    memory.holds(large, 60)
    memory.holds(middle, 30)
    assert memory.held_bytes == 100
    memory.holds(small, 11)
    assert [len(each.reasons) for each in (small, large, middle)] == [0, 1, 0]
    assert "100 bytes" in large.reasons[0]
    assert (memory.held_bytes, memory.closed_count) == (41, 1)
    memory.holds(large, 0)
    assert memory.held_bytes == 41
    memory.holds(middle, 0)
    assert memory.held_bytes == 11


def test_one_reply_above_the_limit_costs_its_own_connection() -> None:
    memory = ReplyMemory(100)
    slow = Slow()
    memory.holds(slow, 101)
    assert (len(slow.reasons), memory.held_bytes) == (1, 0)
