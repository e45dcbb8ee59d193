from __future__ import annotations

from millbeck.coordinator.share.partition.window import NOBODY, AcquisitionLock, InFlightBatch, InFlightWindow
from millbeck.coordinator.share.states import RecordState


def _window(*sizes: int) -> InFlightWindow:
    window = InFlightWindow(10)
    for size in sizes:
        window.append(window.end_offset + size, RecordState.AVAILABLE, 0)
    return window


def _ranges(runs: list[InFlightBatch]) -> list[tuple[int, int]]:
    return [(run.first, run.last) for run in runs]


def test_runs_lie_one_behind_the_other() -> None:
    window = _window(3, 2)
    assert _ranges(window.runs) == [(10, 12), (13, 14)]
    assert (window.start_offset, window.end_offset, len(window)) == (10, 14, 5)
    assert _ranges(window.overlapping(12, 13)) == [(10, 12), (13, 14)]
    assert window.overlapping(15, 20) == []


def test_a_part_is_isolated_by_splitting_at_its_ends() -> None:
    window = _window(10)
    assert _ranges(window.isolate(12, 14)) == [(12, 14)]
    assert _ranges(window.runs) == [(10, 11), (12, 14), (15, 19)]
    assert _ranges(window.isolate(10, 19)) == [(10, 11), (12, 14), (15, 19)]


def test_neighbours_that_are_alike_are_joined_again() -> None:
    window = _window(10)
    window.isolate(12, 14)[0].delivery_count = 1
    window.isolate(16, 17)
    window.join(10, 19)
    assert _ranges(window.runs) == [(10, 11), (12, 14), (15, 19)]


def test_what_is_final_is_joined_whatever_its_count() -> None:
    window = _window(2, 2)
    for count, run in enumerate(window.runs):
        run.state, run.delivery_count = RecordState.ARCHIVED, count
    window.join(10, 13)
    assert _ranges(window.runs) == [(10, 13)]


def test_different_locks_are_not_joined() -> None:
    window = _window(2, 2)
    window.runs[0].lock = AcquisitionLock("a", 10, 11, 5)
    window.runs[1].lock = AcquisitionLock("a", 12, 13, 6)
    window.join(10, 13)
    assert len(window.runs) == 2
    assert window.runs[0].owner == "a"
    assert min(window.runs[1].lock, window.runs[0].lock).deadline_ms == 5


def test_the_beginning_goes_even_beyond_the_end() -> None:
    window = _window(5, 5)
    window.truncate_prefix(12)
    assert _ranges(window.runs) == [(12, 14), (15, 19)]
    window.truncate_prefix(11)
    assert window.start_offset == 12
    window.truncate_prefix(30)
    assert (window.runs, window.start_offset, window.end_offset, len(window)) == ([], 30, 29, 0)


def test_both_halves_of_a_split_run_are_alike() -> None:
    run = InFlightBatch(0, 9, RecordState.ACQUIRED, 2)
    run.lock = AcquisitionLock("a", 0, 9, 5)
    rest = run.split_at(4)
    assert (run.last, rest.first, rest.last, len(rest)) == (3, 4, 9, 6)
    assert rest.is_like(run)
    assert InFlightBatch(0, 1, RecordState.AVAILABLE, 0).owner == NOBODY
