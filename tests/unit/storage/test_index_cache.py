from __future__ import annotations

from typing import Any

from millbeck.storage.index_cache import IndexCache


class FakeSegment:
    def __init__(self, size: int) -> None:
        self.index_memory_bytes = size
        self.is_dropped = False

    def drop_indexes(self) -> None:
        self.is_dropped = True


def test_the_least_recently_remembered_indexes_are_dropped() -> None:
    cache = IndexCache(100)
    first, second, third = (FakeSegment(40) for _ in range(3))
    segments: list[Any] = [first, second, first, third]
    for segment in segments:
        cache.remember(segment)
    assert [segment.is_dropped for segment in (first, second, third)] == [False, True, False]
    assert cache.size_bytes == 80


def test_one_that_is_larger_than_all_room_is_kept_alone() -> None:
    cache = IndexCache(100)
    small: Any = FakeSegment(40)
    large: Any = FakeSegment(400)
    cache.remember(small)
    cache.remember(large)
    assert small.is_dropped
    assert not large.is_dropped
    cache.forget(large)
    assert cache.size_bytes == 0


def test_indexes_of_sealed_segments_are_dropped_and_read_again(world: Any) -> None:
    world.log.environment.index_cache.limit_bytes = 1
    world.append_many(40)
    world.log.flush()
    sealed = world.log.segments[:-1]
    for segment in sealed:
        assert segment.offset_index().entry_count
    assert sum(segment.index_memory_bytes > 0 for segment in sealed) == 1
    assert world.read(0)[0] == 0
