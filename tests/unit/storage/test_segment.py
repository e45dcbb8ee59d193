from __future__ import annotations

from typing import Any

import pytest

from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.segment import CorruptSegment, file_name


def one_segment(world: Any, count: int = 8) -> Any:
    world.configure(internal_segment_bytes="100000", index_interval_bytes="200")
    world.append_many(count, records=2)
    return world.log.active


def test_files_are_named_by_twenty_digits() -> None:
    assert file_name(4711, ".log") == "00000000000000004711.log"


def test_an_index_entry_follows_every_interval(world: Any) -> None:
    segment = one_segment(world)
    size = len(world.batch(2))
    entries = segment.offset_index().entries()
    assert entries == [(2 * index + 1, index * size) for index in range(0, 8, 2) if index]
    assert segment.bytes_since_index == 2 * size


def test_a_walk_finds_the_first_batch_that_reaches_the_offset(world: Any) -> None:
    segment = one_segment(world)
    size = len(world.batch(2))
    for offset in range(16):
        found = segment.find(offset)
        assert (found.base_offset, found.last_offset) == (offset - offset % 2, offset - offset % 2 + 1)
        assert found.position == offset // 2 * size
    assert segment.find(16) is None


def test_an_index_that_points_between_batches_is_corrupt(world: Any) -> None:
    segment = one_segment(world)
    segment.offset_index().content[4:8] = (7).to_bytes(4, "big")
    with pytest.raises(CorruptIndex):
        segment.find(6)


def test_batches_that_go_back_are_corrupt(world: Any) -> None:
    segment = one_segment(world)
    size = len(world.batch(2))
    world.overwrite("00000000000000000000.log", 3 * size, (1).to_bytes(8, "big"))
    with pytest.raises(CorruptSegment) as corrupt:
        segment.walk(15, 0)
    assert corrupt.value.position == 3 * size
    with pytest.raises(CorruptSegment):
        list(segment.headers())


def test_a_file_that_is_shorter_than_it_should_be_is_corrupt(world: Any) -> None:
    segment = one_segment(world)
    segment.handle.get().truncate(10)
    with pytest.raises(CorruptSegment):
        segment.walk(15, 0)
    with pytest.raises(CorruptSegment):
        list(segment.headers())


def test_the_next_offset_is_found_from_the_last_index_entry(world: Any) -> None:
    assert one_segment(world).next_offset() == 16
    assert one_segment(world, 1).next_offset() == 18


def test_sealed_indexes_are_saved_and_loaded_again(world: Any) -> None:
    segment = one_segment(world)
    before = segment.offset_index().entries()
    world.log.roll(0)
    world.log.flush()
    segment.drop_indexes()
    assert segment.index_memory_bytes == 0
    assert segment.offset_index().entries() == before
    assert world.names(".txnindex") == []


def test_unsaved_indexes_are_never_dropped(world: Any) -> None:
    segment = one_segment(world)
    segment.drop_indexes()
    assert segment.offset_index().entry_count == 3


def test_a_missing_index_is_corrupt_not_an_error_of_the_disk(world: Any) -> None:
    segment = one_segment(world)
    world.log.roll(0)
    world.log.flush()
    segment.drop_indexes()
    segment.remove_index_files()
    segment.has_unsaved_indexes = False
    for nowait in (False, True):
        with pytest.raises(CorruptIndex):
            segment.offset_index(nowait)


def test_the_first_append_after_a_clean_start_removes_the_index_files(world: Any) -> None:
    one_segment(world)
    world.close_and_reopen()
    assert world.names("index") == ["00000000000000000000.index", "00000000000000000000.timeindex"]
    world.append()
    assert world.names("index") == []
    assert world.read(3)[0] == 2
