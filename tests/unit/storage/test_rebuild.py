"""What follows from the batches is what was live."""

from __future__ import annotations

from functools import partial
from typing import Any

from millbeck.records import batch as batches
from millbeck.storage import rebuild
from millbeck.storage.producer_state import ProducerStateManager


def filled(world: Any) -> None:
    world.configure(index_interval_bytes="120")
    for index, timestamp in enumerate((5, 9, 7, 9, 20, 3, 25, 1, 30, 2)):
        world.append(
            world.batch(
                1 + index % 3, timestamp=timestamp, producer_id=1, sequence=[0, 1, 3, 6, 7, 9, 12, 13, 15, 18][index]
            )
        )


def test_rebuilt_indexes_equal_those_that_grew(world: Any) -> None:
    filled(world)
    world.log.roll(0)
    for segment in world.log.segments[:-1]:
        grown = (segment.offset_index().entries(), segment.time_index().entries(), segment.largest_timestamp())
        assert rebuild.indexes(segment) > segment.base_offset
        assert (segment.offset_index().entries(), segment.time_index().entries(), segment.largest_timestamp()) == grown


def test_producers_are_the_same_from_any_snapshot(world: Any) -> None:
    filled(world)
    log = world.log
    known = log.durability
    for limit in (0, *known.snapshot_offsets):
        read_snapshot = partial(known.read_snapshot, log)
        state = rebuild.load_producers(log.segments, known.snapshot_offsets, read_snapshot, limit, log.end_offset)
        assert state.producers[1].last_sequence == log.producers.producers[1].last_sequence
    rebuild.producers(log)
    assert log.producers.producers[1].last_sequence == 18


def test_only_batches_below_the_limit_are_replayed(world: Any) -> None:
    filled(world)
    log = world.log
    base = log.base_offsets[1]
    state = rebuild.load_producers(log.segments, [], lambda offset: None, 0, base)
    assert state.producers[1].last_offset == base - 1


def test_a_control_batch_that_compaction_has_emptied_says_nothing() -> None:
    state = ProducerStateManager()
    header = batches.read_header(
        batches.build([], producer_id=1, producer_epoch=0, is_transactional=True, is_control=True, last_offset=0)
    )
    assert rebuild.stage_replayed(state, b"", header) is None
    assert not state.has_staged
