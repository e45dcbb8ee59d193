"""After an unclean stop: cut at the first bad batch, whatever follows; rebuild the rest; leave what was durable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.errors import KafkaStorageError

LOG = "00000000000000000000.log"


def filled(world: Any, count: int = 6) -> int:
    """One segment of equal batches; returns the size of one."""
    world.configure(internal_segment_bytes="100000", index_interval_bytes="100")
    world.append_many(count)
    return len(world.batch())


DAMAGE: dict[str, Callable[[Any, int], None]] = {
    "a flipped bit in the records": lambda world, at: world.overwrite(LOG, at + 70, b"\xff"),
    "a flipped bit in the checksum": lambda world, at: world.overwrite(LOG, at + 18, b"\xff"),
    "a hole of zeros": lambda world, at: world.overwrite(LOG, at, bytes(80)),
    "an impossible length": lambda world, at: world.overwrite(LOG, at + 8, b"\x7f\xff\xff\xff"),
    "another magic": lambda world, at: world.overwrite(LOG, at + 16, b"\x01"),
    "an offset that goes back": lambda world, at: world.overwrite(LOG, at, (0).to_bytes(8, "big")),
    "an offset that leaves a gap": lambda world, at: world.overwrite(LOG, at, (99).to_bytes(8, "big")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_the_log_is_cut_at_the_first_bad_batch(world: Any, damage: Callable[[Any, int], None]) -> None:
    size = filled(world)
    damage(world, 3 * size)
    log = world.kill_and_reopen()
    assert (log.end_offset, log.size_bytes, world.stored(log)) == (3, 3 * size, [0, 1, 2])
    assert world.files.size(f"{world.path}/{LOG}") == 3 * size
    assert world.append().first_offset == 3


@pytest.mark.parametrize("cut", [1, 11, 12, 60, 61, 70])
def test_a_torn_last_batch_is_cut_off(world: Any, cut: int) -> None:
    size = filled(world)
    world.log.active.handle.get().truncate(5 * size + cut)
    assert world.kill_and_reopen().end_offset == 5


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_below_the_recovery_point_takes_the_log_offline_and_touches_nothing(
    world: Any, damage: Callable[[Any, int], None]
) -> None:
    size = filled(world)
    world.log.flush()
    world.directory.checkpoint_job()()
    world.append_many(2)
    damage(world, 3 * size)
    before = world.read_file(LOG)
    log = world.kill_and_reopen()
    assert log.is_offline
    with pytest.raises(KafkaStorageError, match=rf"{LOG} is corrupt at position {3 * size}"):
        world.append()
    assert world.read_file(LOG) == before
    assert world.failures == []


def test_segments_after_the_bad_batch_go(world: Any) -> None:
    world.append_many(40)
    bases = world.log.base_offsets
    assert len(bases) > 3
    world.overwrite(f"{bases[1]:020d}.log", 70, b"\xff")
    log = world.kill_and_reopen()
    assert log.base_offsets == bases[:2]
    assert log.end_offset == bases[1]
    assert world.names(".log") == [f"{base:020d}.log" for base in bases[:2]]
    assert world.append().first_offset == bases[1]


def test_a_missing_segment_beyond_the_recovery_point_ends_the_log(world: Any) -> None:
    world.append_many(30)
    bases = world.log.base_offsets
    world.files.unlink(f"{world.path}/{bases[2]:020d}.log")
    log = world.kill_and_reopen()
    assert log.base_offsets == bases[:2]
    assert log.end_offset == bases[2]


def test_gaps_below_the_recovery_point_are_ordinary_too(world: Any) -> None:
    for offset in (0, 7, 20):
        batch = bytearray(world.batch())
        batch[0:8] = offset.to_bytes(8, "big")
        world.log.append_as_follower(bytes(batch), leader_epoch=0, now_ms=0)
    world.log.flush()
    world.directory.checkpoint_job()()
    log = world.kill_and_reopen()
    assert (log.end_offset, world.stored(log)) == (21, [0, 7, 20])


def test_in_a_compacted_log_gaps_are_ordinary(world: Any) -> None:
    world.configure(cleanup_policy="compact")
    for offset in (0, 7, 20):
        batch = bytearray(world.batch())
        batch[0:8] = offset.to_bytes(8, "big")
        world.log.append_as_follower(bytes(batch), leader_epoch=0, now_ms=0)
        world.log.roll(0)
    log = world.kill_and_reopen()
    assert (log.end_offset, world.stored(log)) == (21, [0, 7, 20])


def test_gaps_of_a_log_that_was_compacted_once_are_kept(world: Any) -> None:
    """The topic is not compacted any more, and its recovery point was lost."""
    for offset in (3, 7, 20, 21):
        batch = bytearray(world.batch())
        batch[0:8] = offset.to_bytes(8, "big")
        world.log.append_as_follower(bytes(batch), leader_epoch=0, now_ms=0)
    assert not world.log.config.is_compacted
    log = world.kill_and_reopen()
    assert (log.end_offset, world.stored(log)) == (22, [3, 7, 20, 21])


def test_a_gap_at_the_end_of_a_segment_is_believed_when_the_next_one_continues(world: Any) -> None:
    for offset in (0, 7, 8):
        batch = bytearray(world.batch())
        batch[0:8] = offset.to_bytes(8, "big")
        if offset == 8:
            world.log.roll(0)
        world.log.append_as_follower(bytes(batch), leader_epoch=0, now_ms=0)
    log = world.kill_and_reopen()
    assert (log.base_offsets, world.stored(log)) == ([0, 8], [0, 7, 8])


def test_a_wrong_offset_in_a_compacted_log_is_told_from_a_gap(world: Any) -> None:
    world.configure(cleanup_policy="compact")
    size = filled(world)
    DAMAGE["an offset that leaves a gap"](world, 3 * size)
    log = world.kill_and_reopen()
    assert (log.end_offset, world.stored(log)) == (3, [0, 1, 2])


def test_everything_derived_is_made_anew(world: Any) -> None:
    for index in range(12):
        world.append(
            world.batch(producer_id=1, sequence=index, timestamp=500 + index, transactional=True),
            leader_epoch=index // 4,
        )
        if index == 5:
            world.end_transaction(1, committed=False)
    live = world.log
    expected = [
        (segment.offset_index().entries(), segment.aborted(), segment.largest_timestamp()) for segment in live.segments
    ]
    log = world.kill_and_reopen()
    found = [
        (segment.offset_index().entries(), segment.aborted(), segment.largest_timestamp()) for segment in log.segments
    ]
    assert found == expected
    assert log.epochs.entries() == live.epochs.entries()
    assert log.producers.producers == live.producers.producers
    assert log.producers.open_transactions == live.producers.open_transactions
    assert log.durability.snapshot_offsets == live.durability.snapshot_offsets


def test_only_from_the_recovery_point_on_is_anything_read(world: Any) -> None:
    world.append_many(30)
    world.log.flush()
    world.directory.checkpoint_job()()
    world.append_many(1)
    bases = world.log.base_offsets
    world.overwrite(f"{bases[0]:020d}.log", 70, b"\xff")
    log = world.kill_and_reopen()
    assert not log.is_offline
    assert log.end_offset == 31


def test_a_recovered_log_is_flushed_no_further_than_it_was(world: Any) -> None:
    filled(world)
    log = world.kill_and_reopen()
    assert log.flushed_offset == 0
    log.flush()
    assert (log.flushed_offset, log.recovery_point) == (6, 6)
