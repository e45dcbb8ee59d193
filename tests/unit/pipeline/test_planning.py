"""Limits and cuts: nothing is left out, nothing twice, and nobody starves."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.ids import TopicPartition
from millbeck.pipeline.planning import ROWS_PER_TASK_MAX, OffsetRange, limited, split

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b"]), st.integers(0, 5))
RANGES = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 500), st.integers(0, 500)), max_size=6)


def ranges_of(backlog: dict[TopicPartition, tuple[int, int]]) -> list[OffsetRange]:
    return [
        OffsetRange(partition=partition, start=start, end=start + size, topic_id=bytes(16))
        for partition, (start, size) in backlog.items()
    ]


@given(RANGES, st.integers(1, 2000))
def test_a_limit_is_shared_out(backlog: dict[TopicPartition, tuple[int, int]], count_max: int) -> None:
    spans = {partition: (start, start + size) for partition, (start, size) in backlog.items()}
    stops = limited(spans, count_max)
    taken = {partition: stops[partition] - spans[partition][0] for partition in spans}
    waiting = {partition: end - start for partition, (start, end) in spans.items()}
    assert all(0 <= taken[partition] <= waiting[partition] for partition in spans)
    assert all(taken[partition] > 0 for partition in spans if waiting[partition] > 0)
    assert sum(taken.values()) <= count_max + len(spans)
    if sum(waiting.values()) <= count_max:
        assert taken == waiting


def test_a_limit_follows_the_backlog() -> None:
    spans = {TopicPartition("a", 0): (0, 900), TopicPartition("a", 1): (50, 150)}
    assert limited(spans, 100) == {TopicPartition("a", 0): 90, TopicPartition("a", 1): 60}


def test_a_partition_that_went_backwards_stays_where_it_is() -> None:
    assert limited({TopicPartition("a", 0): (10, 5)}, 100) == {TopicPartition("a", 0): 10}


@given(RANGES, st.none() | st.integers(1, 40), st.none() | st.integers(1, 300))
def test_pieces_make_up_the_ranges(
    backlog: dict[TopicPartition, tuple[int, int]], count_min: int | None, rows_max: int | None
) -> None:
    ranges = ranges_of(backlog)
    pieces = split(ranges, count_min=count_min, rows_max=rows_max)
    covered = [(piece.partition, offset) for piece in pieces for offset in range(piece.start, piece.end)]
    assert covered == [(found.partition, offset) for found in ranges for offset in range(found.start, found.end)]
    assert all(0 < piece.size <= (rows_max or ROWS_PER_TASK_MAX) for piece in pieces)
    total = sum(found.size for found in ranges)
    assert len(pieces) >= min(count_min or 0, total)
    assert pieces == split(ranges, count_min=count_min, rows_max=rows_max)
    if count_min is None and rows_max is None:
        assert len(pieces) == len([found for found in ranges if found.size])


def test_a_long_range_is_cut() -> None:
    (long,) = ranges_of({TopicPartition("a", 0): (5, 2 * ROWS_PER_TASK_MAX + 1)})
    assert [piece.size for piece in split([long])] == [666667, 666667, 666667]
