"""A leader's batches keep their offsets."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import CorruptMessage, KafkaStorageError, RecordListTooLarge
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.storage.follower_append import UnexpectedAppendOffset


def placed(batch: bytes, offset: int, epoch: int = 0) -> bytes:
    buffer = bytearray(batch)
    batches.patch(buffer, offset, epoch)
    return bytes(buffer)


def test_batches_are_written_as_they_are(world: Any) -> None:
    sent = placed(world.batch(2), 10, 3) + placed(world.batch(1), 12, 4)
    assert world.log.append_as_follower(sent, leader_epoch=4, now_ms=0) == 13
    assert world.read_file("00000000000000000000.log") == sent
    assert world.log.epochs.entries() == [(3, 10), (4, 12)]


def test_a_cut_off_tail_is_left_out(world: Any) -> None:
    sent = placed(world.batch(2), 0) + placed(world.batch(2), 2)[:-1]
    assert world.log.append_as_follower(sent, leader_epoch=0, now_ms=0) == 2


def test_offsets_never_go_back(world: Any) -> None:
    world.append_many(3)
    with pytest.raises(UnexpectedAppendOffset) as refused:
        world.log.append_as_follower(placed(world.batch(), 2), leader_epoch=0, now_ms=0)
    assert (refused.value.first_offset, refused.value.end_offset) == (2, 3)
    with pytest.raises(UnexpectedAppendOffset):
        world.log.append_as_follower(placed(world.batch(2), 3) + placed(world.batch(), 4), leader_epoch=0, now_ms=0)
    assert world.log.end_offset == 3


def test_a_newer_leaders_batches_are_not_taken(world: Any) -> None:
    sent = placed(world.batch(), 0, 1) + placed(world.batch(), 1, 2)
    assert world.log.append_as_follower(sent, leader_epoch=1, now_ms=0) == 1


def test_checksums_are_verified_and_nothing_is_written_otherwise(world: Any) -> None:
    bad = bytearray(placed(world.batch(), 1))
    bad[-1] ^= 1
    with pytest.raises(CorruptMessage):
        world.log.append_as_follower(placed(world.batch(), 0) + bad, leader_epoch=0, now_ms=0)
    assert (world.log.end_offset, world.log.size_bytes) == (0, 0)


def test_too_large_for_a_segment(world: Any) -> None:
    with pytest.raises(RecordListTooLarge):
        world.log.append_as_follower(placed(world.batch(size=5000), 0), leader_epoch=0, now_ms=0)
    assert world.append().first_offset == 0


def test_producers_and_transactions_follow_without_checks(world: Any) -> None:
    sent = placed(world.batch(producer_id=1, sequence=77, transactional=True), 0)
    sent += placed(world.batch(producer_id=1, sequence=5, transactional=True), 1)
    marker = control.EndTransaction(committed=False, coordinator_epoch=0)
    sent += placed(control.marker_batch(marker, producer_id=1, producer_epoch=0, timestamp=1), 2)
    world.log.append_as_follower(sent, leader_epoch=0, now_ms=0)
    assert world.log.producers.producers[1].last_sequence == 5
    assert world.log.aborted_transactions(0, 3) == [(1, 0, 2, 3)]


def test_a_full_disk_undoes_all(world: Any) -> None:
    world.append()
    world.disk.faults.capacity_bytes = 0
    with pytest.raises(KafkaStorageError):
        world.log.append_as_follower(placed(world.batch(producer_id=1), 1), leader_epoch=0, now_ms=0)
    assert (world.log.end_offset, world.log.producers.producers) == (1, {})
