"""Windows with running results, against their definitions; the store is a dictionary here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.pipeline.topology.keyed import InputRecord, RecordOrder
from millbeck.pipeline.topology.partials import FIRST, LAST_UNLESS_NULL, PARTIALS, PartialResults
from millbeck.pipeline.topology.running_windows import (
    EMITS,
    EVERY,
    FINAL,
    UPDATE,
    Held,
    LateRecord,
    RunningSessions,
    RunningSlidingWindows,
    RunningTimeWindows,
    RunningWindows,
    WindowResult,
)

S = 1_000_000
LISTS = PartialResults((PARTIALS["collect_list"],), (1,))
GRACE = 4 * S

Key = tuple[int, int]


class Store:
    def __init__(self) -> None:
        self.held: dict[int, Held] = {}
        self.timers: set[int] = set()

    def get(self, start: int) -> Held | None:
        return self.held.get(start)

    def entries(self) -> Iterator[tuple[int, Held]]:
        return iter(list(self.held.items()))

    def put(self, start: int, held: Held) -> None:
        self.held[start] = held

    def remove(self, start: int) -> None:
        del self.held[start]

    def wake(self, at_ms: int) -> None:
        self.timers.add(at_ms)

    def take_due(self, closed_ms: int) -> list[int]:
        due = sorted(at for at in self.timers if at <= closed_ms)
        self.timers.difference_update(due)
        return due


class Run:
    """Records by their times in seconds, in batches; the watermark moves between two of them."""

    def __init__(self, logic: RunningWindows, batches: list[list[int]], grace: int = GRACE) -> None:
        self.emitted: list[WindowResult] = []
        self.late: list[int] = []
        self.numbers: dict[int, int] = {}
        """The time of each record, by its number, which is its value."""
        store, closed, latest, offset = Store(), 0, 0, 0
        for times in [*batches, [1000], [2000], [3000]]:
            records = []
            for time in times:
                records.append(InputRecord(0, RecordOrder(0, offset, 0), time * S, (offset,)))
                self.numbers[offset] = time * S
                offset += 1
            for made in logic.arrived(store, iter(records), closed):
                if isinstance(made, LateRecord):
                    self.late.append(made.record.value[0])
                else:
                    self.emitted.append(made)
            for at_ms in store.take_due(closed // 1000):
                self.emitted += logic.expired(store, at_ms * 1000)
            latest = max([latest, *[time * S for time in times]])
            closed = max(0, latest - grace)
        self.left = store.held

    def last(self) -> dict[Key, list[int]]:
        """What was told of each window last; windows of the records that end the run are left out."""
        told: dict[Key, list[int]] = {}
        for result in self.emitted:
            if result.partials is None:
                del told[result.start, result.end]
            elif result.start < 900 * S:
                told[result.start, result.end] = result.partials[0]
        return told


def _batches() -> Any:
    return st.lists(st.lists(st.integers(0, 30), max_size=6), min_size=1, max_size=6)


def _time_windows(records: dict[int, int]) -> dict[Key, list[int]]:
    windows: dict[Key, list[int]] = {}
    for number, at in records.items():
        for start in range(at - at % (5 * S), at - 10 * S, -5 * S):
            windows.setdefault((start, start + 10 * S), []).append(number)
    return windows


def _sessions(records: dict[int, int]) -> dict[Key, list[int]]:
    groups: list[list[int]] = []
    for number in sorted(records, key=lambda number: (records[number], number)):
        if groups and records[number] - records[groups[-1][-1]] < 3 * S:
            groups[-1].append(number)
        else:
            groups.append([number])
    return {(records[group[0]], records[group[-1]] + 3 * S): sorted(group) for group in groups}


def _sliding_windows(records: dict[int, int]) -> dict[Key, list[int]]:
    starts = {at - 3 * S for at in records.values()} | {at + 1000 for at in records.values()}
    windows = {}
    for start in starts:
        inside = [number for number, at in records.items() if start <= at <= start + 3 * S]
        if inside:
            windows[start, start + 3 * S] = inside
    return windows


CASES = {
    "hopping": (lambda emit: RunningTimeWindows(10 * S, 5 * S, LISTS, emit), _time_windows),
    "session": (lambda emit: RunningSessions(3 * S, LISTS, emit), _sessions),
    "sliding": (lambda emit: RunningSlidingWindows(3 * S, LISTS, emit), _sliding_windows),
}


@pytest.mark.parametrize(("made", "windows_of"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("emit", EMITS)
@given(batches=_batches())
def test_in_the_end_each_window_has_its_records(
    made: Any, windows_of: Any, emit: str, batches: list[list[int]]
) -> None:
    run = Run(made(emit), batches, grace=100 * S)
    assert not run.late
    records = {number: at for number, at in run.numbers.items() if at < 900 * S}
    assert {window: sorted(numbers) for window, numbers in run.last().items()} == windows_of(records)
    assert all(start >= 900 * S for start in run.left), "closed windows are kept"


@pytest.mark.parametrize("made", [made for made, _ in CASES.values()], ids=CASES.keys())
@given(batches=_batches())
def test_every_result_is_that_of_more_records_and_updates_are_among_them(made: Any, batches: list[list[int]]) -> None:
    every, update, final = (Run(made(emit), batches) for emit in (EVERY, UPDATE, FINAL))
    assert every.late == update.late == final.late
    assert every.last() == update.last() == final.last()
    told: dict[Key, list[int]] = {}
    for result in every.emitted:
        window = (result.start, result.end)
        if result.partials is None:
            del told[window]
            continue
        before = told.get(window, [])
        assert len(result.partials[0]) > len(before)
        assert set(before) < set(result.partials[0])
        told[window] = result.partials[0]
    results = [result for result in every.emitted if result.partials is not None]
    for result in update.emitted:
        assert result.partials is None or any(
            (result.start, result.end, set(result.partials[0])) == (each.start, each.end, set(each.partials[0]))
            for each in results
            if each.partials is not None
        )


def test_a_record_is_late_when_all_its_windows_have_closed() -> None:
    run = Run(RunningTimeWindows(10 * S, 10 * S, LISTS, UPDATE), [[1], [13], [8], [14], [9]])
    # The watermark is 9 s when 8 s comes, and 10 s when 9 s comes.
    assert [run.numbers[number] // S for number in run.late] == [9]
    assert run.last() == {(0, 10 * S): [0, 2], (10 * S, 20 * S): [1, 3]}


def test_a_session_that_grows_takes_back_what_it_told() -> None:
    run = Run(RunningSessions(3 * S, LISTS, UPDATE), [[1, 6], [4], [5]])
    told = [(result.start // S, result.end // S, result.partials and result.partials[0]) for result in run.emitted]
    assert told[:6] == [(1, 4, [0]), (6, 9, [1]), (6, 9, None), (4, 9, [1, 2]), (4, 9, [1, 2, 3]), (1000, 1003, [4])]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("count", [(1,), (None,), (0,)], 2),
        ("count_if", [(True,), (None,), (False,)], 1),
        ("sum", [(None,), (2,), (3,)], 5),
        ("avg", [(None,), (2.0,), (3.0,)], {"sum": 5.0, "count": 2}),
        ("min", [(3.0,), (float("nan"),), (None,), (2.0,)], 2.0),
        ("max", [(3,), (None,), (2,)], 3),
        ("bool_and", [(True,), (None,), (False,)], False),
        ("bool_or", [(True,), (None,), (False,)], True),
        ("min_by", [("a", 2), ("b", 1), ("c", None)], {"value": "b", "rank": 1}),
        ("max_by", [("a", 2), ("b", 1), ("c", 2)], {"value": "a", "rank": 2}),
        ("collect_list", [(1,), (None,), (1,)], [1, 1]),
        ("collect_set", [(1,), (None,), (1,), (2,)], [1, 2]),
    ],
)
def test_partial_results(name: str, values: list[tuple[Any, ...]], expected: Any) -> None:
    function = PARTIALS[name]
    held = None
    for value in values:
        held = function.fold(held, value)
    assert held == expected
    assert function.fold(None, (None, None)) is None


def test_the_greatest_number_is_nan() -> None:
    nan = float("nan")
    for values in ([1.0, nan, 2.0], [nan, 1.0]):
        held = None
        for value in values:
            held = PARTIALS["max"].fold(held, (value,))
        assert held != held


def test_first_and_last_with_and_without_null() -> None:
    both = PartialResults((FIRST, LAST_UNLESS_NULL), (1, 1))
    held = both.merge(both.merge(both.start((None, 1)), both.start((5, 2))), both.start((6, None)))
    assert held == ({"value": None}, {"value": 2})


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20), st.integers(0, 20))
def test_moments_are_those_of_all_numbers(numbers: list[float], cut: int) -> None:
    function = PARTIALS["var_pop"]
    parts: list[Any] = [None, None]
    for position, number in enumerate(numbers):
        half = position >= cut
        parts[half] = function.fold(parts[half], (number,))
    held = function.join(*parts)
    mean = sum(numbers) / len(numbers)
    assert held["mean"] == pytest.approx(mean, abs=1e-6)
    assert held["squares"] == pytest.approx(sum((each - mean) ** 2 for each in numbers), abs=1e-4)
