"""Parked replies leave in order of offset, once, and abandoned ones take no room."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.kernel.deferred import Deferred, DeferredQueue


def test_items_leave_when_the_watermark_reaches_their_offset() -> None:
    queue: DeferredQueue[str] = DeferredQueue()
    for offset, item in [(10, "a"), (20, "b"), (20, "c"), (30, "d")]:
        queue.park(offset, item)
    assert queue.first_offset == 10
    assert queue.pop_until(9) == []
    assert queue.pop_until(20) == ["a", "b", "c"]
    assert queue.pop_until(20) == []
    assert (len(queue), queue.first_offset) == (1, 30)
    assert queue.pop_until(100) == ["d"]
    assert [len(queue), queue.first_offset] == [0, None]


def test_an_earlier_offset_parked_late_still_leaves_first() -> None:
    queue: DeferredQueue[str] = DeferredQueue()
    for offset, item in [(10, "a"), (30, "c"), (20, "b"), (10, "a2")]:
        queue.park(offset, item)
    assert queue.pop_until(30) == ["a", "a2", "b", "c"]


def test_an_abandoned_item_never_leaves() -> None:
    queue: DeferredQueue[str] = DeferredQueue()
    first, second = queue.park(1, "a"), queue.park(2, "b")
    queue.park(3, "c")
    assert first.abandon()
    assert not first.abandon()
    assert (first.is_parked, second.is_parked, queue.first_offset, len(queue)) == (False, True, 2, 2)
    assert queue.pop_until(3) == ["b", "c"]
    assert not second.abandon()


def test_abandoned_items_do_not_count_as_waiting_before_or_after_they_are_passed() -> None:
    queue: DeferredQueue[int] = DeferredQueue()
    deferred = [queue.park(offset, offset) for offset in range(9)]
    for offset in (1, 2, 4):
        deferred[offset].abandon()
    assert len(queue) == 6
    assert queue.pop_until(3) == [0, 3]
    assert len(queue) == 4
    assert queue.pop_until(8) == [5, 6, 7, 8]
    assert len(queue) == 0


def test_pop_all_empties_and_ends_everything() -> None:
    queue: DeferredQueue[str] = DeferredQueue()
    deferred = [queue.park(offset, str(offset)) for offset in range(5)]
    deferred[1].abandon()
    assert queue.pop_all() == ["0", "2", "3", "4"]
    assert [len(queue), queue.first_offset, queue.pop_until(100)] == [0, None, []]
    assert not any(one.abandon() for one in deferred)


def test_abandoned_items_behind_one_that_waits_for_long_are_dropped() -> None:
    queue: DeferredQueue[int] = DeferredQueue()
    queue.park(0, -1)
    for number in range(1000):
        queue.park(number, number).abandon()
    assert len(queue) == 1
    assert len(queue._parked) <= 3


@given(st.lists(st.tuples(st.sampled_from(["park", "pop", "abandon"]), st.integers(0, 20)), max_size=60))
@settings(max_examples=100)
def test_queue_equals_a_sorted_list(steps: list[tuple[str, int]]) -> None:
    queue: DeferredQueue[int] = DeferredQueue()
    waiting: dict[int, Deferred[int]] = {}
    for number, (step, argument) in enumerate(steps):
        if step == "park":
            waiting[number] = queue.park(argument, number)
        elif step == "pop":
            due = sorted((d.offset, key) for key, d in waiting.items() if d.offset <= argument)
            assert queue.pop_until(argument) == [key for _, key in due]
            for _, key in due:
                assert not waiting.pop(key).is_parked
        elif waiting:
            key = list(waiting)[argument % len(waiting)]
            assert waiting.pop(key).abandon()
        assert len(queue) == len(waiting)
        assert queue.first_offset == min((d.offset for d in waiting.values()), default=None)
