"""Which sources become one segment."""

from __future__ import annotations

from millbeck.storage.compaction.grouping import group
from millbeck.storage.compaction.job import SourceSegment


def source(base: int, upper: int, size: int) -> SourceSegment:
    return SourceSegment(base, upper, f"{base}.log", size)


def bases(sources: list[SourceSegment], index_sizes: tuple[int, int] = (0, 0)) -> list[list[int]]:
    groups = group(sources, size_max=100, index_size_max=100, index_sizes=lambda each: index_sizes)
    return [[one.base_offset for one in each] for each in groups]


def test_neighbours_are_joined_up_to_the_size_of_a_segment() -> None:
    sources = [source(0, 10, 50), source(10, 20, 50), source(20, 30, 1), source(30, 40, 99), source(40, 50, 1)]
    assert bases(sources) == [[0, 10], [20, 30], [40]]


def test_a_source_that_is_too_large_stands_alone() -> None:
    assert bases([source(0, 10, 500), source(10, 20, 1), source(20, 30, 500)]) == [[0], [10], [20]]


def test_indexes_must_fit_too() -> None:
    sources = [source(0, 10, 1), source(10, 20, 1)]
    assert bases(sources, index_sizes=(50, 50)) == [[0, 10]]
    assert bases(sources, index_sizes=(60, 0)) == [[0], [10]]
    assert bases(sources, index_sizes=(0, 60)) == [[0], [10]]


def test_offsets_must_be_expressible_relative_to_the_base() -> None:
    limit = 2**31
    assert bases([source(0, 10, 1), source(10, limit, 1)]) == [[0, 10]]
    assert bases([source(0, 10, 1), source(10, limit + 1, 1)]) == [[0], [10]]


def test_nothing_makes_no_group() -> None:
    assert bases([]) == []
