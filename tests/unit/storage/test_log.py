"""Appends are staged and written together, or not at all."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidRecord,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfOrderSequenceNumber,
    RecordListTooLarge,
)
from millbeck.records import batch as batches
from millbeck.records import control
from millbeck.simulation.environment.disk_faults import DiskCall
from millbeck.storage.log import WRITEBACK_BYTES
from millbeck.storage.producer_state import AppendOrigin
from tests.log_steps import apply_retention, truncate_to


def test_batches_get_offsets_and_epoch_and_keep_their_checksum(world: Any) -> None:
    world.append(world.batch(3), leader_epoch=4)
    world.append(world.batch(2), leader_epoch=4)
    stored = [batches.verify(one.data) for one in batches.split(world.read_file("00000000000000000000.log"))]
    assert [(one.base_offset, one.last_offset, one.partition_leader_epoch) for one in stored] == [(0, 2, 4), (3, 4, 4)]
    assert world.log.end_offset == 5


def test_a_writable_buffer_is_patched_in_place(world: Any) -> None:
    world.append()
    buffer = bytearray(world.batch())
    world.append(buffer, leader_epoch=9)
    header = batches.verify(buffer)
    assert (header.base_offset, header.partition_leader_epoch) == (1, 9)


def test_nothing_is_visible_before_the_write(world: Any) -> None:
    log = world.log
    world.stage(world.batch(producer_id=1))
    assert log.end_offset == 0
    assert log.size_bytes == 0
    assert log.producers.producers == {}
    assert log.epochs.entries() == []
    log.write_staged()
    assert (log.end_offset, log.epochs.entries()) == (1, [(0, 0)])


def test_what_is_staged_together_is_written_with_one_call(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    log = world.log
    file = log.active.handle.get()
    calls: list[int] = []
    write = type(file).write

    def counting(self: Any, buffers: Any, position: int) -> None:
        calls.append(len(buffers))
        write(self, buffers, position)

    monkeypatch.setattr(type(file), "write", counting)
    staged = [world.stage(world.batch()) for _ in range(3)]
    log.write_staged()
    assert [one.first_offset for one in staged] == [0, 1, 2]
    assert len(calls) == 1
    log.write_staged()
    assert len(calls) == 1


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EIO])
def test_a_failed_write_leaves_the_log_as_it_was(world: Any, error: int) -> None:
    world.append(world.batch(producer_id=1))
    log = world.log
    size = log.size_bytes
    world.disk.fail_next(DiskCall.WRITE, path_part=".log", error=error)
    world.stage(world.batch(producer_id=1, sequence=1))
    world.stage(world.batch())
    with pytest.raises(KafkaStorageError):
        log.write_staged()
    assert (log.end_offset, log.size_bytes, log.active.handle.get().size()) == (1, size, size)
    assert log.producers.producers[1].last_sequence == 0
    assert not log.is_offline
    log.flush()
    assert world.append(world.batch(producer_id=1, sequence=1)).first_offset == 1


def test_a_full_disk_refuses_appends_and_serves_reads_until_there_is_room(world: Any) -> None:
    world.append_many(3)
    world.disk.faults.capacity_bytes = world.disk.used_bytes + 20
    for _ in range(3):
        with pytest.raises(KafkaStorageError):
            world.append()
        assert world.read(0) == [0, 1, 2]
    world.disk.faults.capacity_bytes = 1 << 40
    world.log.flush()
    assert world.append().first_offset == 3
    assert world.failures == []


def test_what_follows_a_batch_without_room_has_no_room_either(world: Any) -> None:
    """It is not out of order: a producer that hears that takes a new epoch, and repeats what is there already."""
    world.append(world.batch(producer_id=1))
    world.disk.fail_next(DiskCall.WRITE, path_part=".log", error=errno.ENOSPC)
    with pytest.raises(KafkaStorageError):
        world.append(world.batch(producer_id=1, sequence=1))
    with pytest.raises(KafkaStorageError, match="sent sequence 2 after 0"):
        world.stage(world.batch(producer_id=1, sequence=2))
    assert world.stage(world.batch(producer_id=1)).is_duplicate
    world.log.flush()
    with pytest.raises(OutOfOrderSequenceNumber):
        world.stage(world.batch(producer_id=1, sequence=2))
    assert world.append(world.batch(producer_id=1, sequence=1)).first_offset == 1
    assert world.append(world.batch(producer_id=1, sequence=2)).first_offset == 2


def test_after_a_failed_write_the_next_waits_for_a_flush_that_began_later(world: Any) -> None:
    world.append()
    job = world.log.flush_job()
    wanted: list[Any] = []
    world.directory.on_flush_wanted = wanted.append
    world.disk.fail_next(DiskCall.WRITE, path_part=".log")
    with pytest.raises(KafkaStorageError):
        world.append()
    assert wanted == [world.log]
    world.log.finish_flush(job, job.run())
    with pytest.raises(KafkaStorageError, match="not synced yet"):
        world.append()
    with pytest.raises(KafkaStorageError, match="not synced yet"):
        world.log.roll(world.clock_ms)
    assert len(wanted) == 3
    assert world.log.is_flush_due(world.clock_ms)
    world.log.flush()
    assert not world.log.is_flush_due(world.clock_ms)
    assert world.append().first_offset == 1


def test_a_sync_of_one_cut_does_not_settle_a_later_one(world: Any) -> None:
    world.append_many(4)
    world.log.cut_to(3)
    job = world.log.flush_job()
    world.log.cut_to(2)
    world.log.finish_flush(job, job.run())
    with pytest.raises(KafkaStorageError, match="not synced yet"):
        world.append()
    world.log.flush()
    assert world.append().first_offset == 2


def test_whoever_flushes_at_once_may_write_at_once(world: Any) -> None:
    world.append()
    world.disk.fail_next(DiskCall.WRITE, path_part=".log")
    with pytest.raises(KafkaStorageError):
        world.append()
    world.directory.on_flush_wanted = lambda log: log.flush()
    assert world.append().first_offset == 1


def test_a_disk_that_is_still_full_is_not_even_tried(world: Any) -> None:
    world.append()
    world.disk.faults.capacity_bytes = world.disk.used_bytes + 20
    with pytest.raises(KafkaStorageError):
        world.append()
    inode = world.disk.find(f"{world.path}/00000000000000000000.log")
    pending = len(inode.pending)
    with pytest.raises(KafkaStorageError, match="20 bytes are free"):
        world.append()
    assert len(inode.pending) == pending


def test_when_cutting_back_fails_too_the_directory_goes_offline(world: Any) -> None:
    world.append()
    world.disk.fail_next(DiskCall.WRITE, path_part=".log", count=2)
    with pytest.raises(KafkaStorageError):
        world.append()
    assert world.log.is_offline
    assert world.directory.offline_reason is not None
    assert world.failures == [world.directory.offline_reason]
    with pytest.raises(KafkaStorageError, match="cannot truncate"):
        world.append()
    with pytest.raises(KafkaStorageError):
        world.read(0)


def test_a_batch_must_fit_a_segment(world: Any) -> None:
    with pytest.raises(RecordListTooLarge):
        world.stage(world.batch(size=2000))
    assert world.append().first_offset == 0


def test_a_batch_must_be_as_long_as_it_says(world: Any) -> None:
    with pytest.raises(CorruptMessage):
        world.stage(world.batch() + b"x")


def test_a_refused_batch_changes_nothing(world: Any) -> None:
    world.append(world.batch(producer_id=1, epoch=1))
    with pytest.raises(OutOfOrderSequenceNumber):
        world.stage(world.batch(producer_id=1, epoch=1, sequence=5))
    with pytest.raises(InvalidProducerEpoch):
        world.stage(world.batch(producer_id=1, epoch=0, sequence=1))
    world.log.write_staged()
    assert world.log.end_offset == 1


def test_clients_may_not_write_control_batches(world: Any) -> None:
    marker = control.EndTransaction(committed=True, coordinator_epoch=0)
    batch = control.marker_batch(marker, producer_id=1, producer_epoch=0, timestamp=1)
    with pytest.raises(InvalidRecord):
        world.stage(batch)


def test_the_quorum_writes_control_batches_without_a_producer(world: Any) -> None:
    values: list[control.ControlValue] = [control.SnapshotFooter()]
    batch = control.control_batch(values, base_offset=0, timestamp=1, partition_leader_epoch=0)
    assert world.append(batch, origin=AppendOrigin.QUORUM).last_offset == 0
    assert world.log.producers.producers == {}


def test_a_marker_takes_an_offset_ends_the_transaction_and_moves_the_stable_offset(world: Any) -> None:
    world.append(world.batch(2, producer_id=1, transactional=True))
    world.append()
    assert world.log.last_stable_offset(3) == 0
    assert world.end_transaction(1, committed=False).first_offset == 3
    assert world.log.last_stable_offset(3) == 0
    assert world.log.last_stable_offset(4) == 4
    assert world.log.aborted_transactions(0, 4) == [(1, 0, 3, 4)]


def test_epochs_are_entered_where_their_first_batch_stands(world: Any) -> None:
    for epoch in (0, 0, 2, 2, 3):
        world.append(leader_epoch=epoch)
    assert world.log.epochs.entries() == [(0, 0), (2, 2), (3, 4)]
    assert world.log.end_offset_for_epoch(1) == (0, 2)
    assert world.log.end_offset_for_epoch(3) == (3, 5)
    world.log.assign_epoch(5, 5)
    assert world.log.end_offset_for_epoch(3) == (3, 5)


def test_deleting_records_moves_the_start_within_the_log(world: Any) -> None:
    world.append_many(5)
    assert world.log.delete_records(3) == 3
    assert world.log.delete_records(2) == 3
    with pytest.raises(OffsetOutOfRange):
        world.log.delete_records(6)
    with pytest.raises(OffsetOutOfRange):
        world.read(2)
    assert world.read(3) == [3, 4]


def test_an_offline_log_says_why_and_touches_nothing(world: Any) -> None:
    world.append()
    log = world.log
    log.mark_offline("of a test")
    refusals: list[Callable[[], object]] = [
        lambda: world.stage(world.batch()),
        lambda: world.read(0),
        lambda: log.delete_records(1),
        lambda: truncate_to(log, 0),
        lambda: log.roll(0),
        lambda: log.offset_for_timestamp(0),
        lambda: log.append_as_follower(b"", leader_epoch=0, now_ms=0),
    ]
    for refused in refusals:
        with pytest.raises(KafkaStorageError, match="topic-0 is offline: of a test"):
            refused()
    assert apply_retention(log, 10**15) == []
    assert log.flush_job() is None
    assert world.failures == []


def test_writeback_is_offered_once_enough_has_gathered(world: Any) -> None:
    world.configure(internal_segment_bytes="100000")
    world.append_many(3)
    assert world.log.writeback_range(10_000) is None
    found = world.log.writeback_range(100)
    assert (found.position, found.size) == (0, world.log.size_bytes)
    found.release()
    assert world.log.writeback_range(100) is None


def test_upkeep_is_due_for_a_flush_and_for_a_writeback(world: Any) -> None:
    world.configure(internal_segment_bytes=str(2 * WRITEBACK_BYTES), max_message_bytes=str(2 * WRITEBACK_BYTES))
    world.append_many(3)
    assert not world.log.is_maintenance_due(world.clock_ms)
    world.append(world.batch(size=WRITEBACK_BYTES))
    assert world.log.is_maintenance_due(world.clock_ms)
    world.log.writeback_range().release()
    assert not world.log.is_maintenance_due(world.clock_ms)
    world.configure(flush_messages="4")
    assert world.log.is_maintenance_due(world.clock_ms)
    world.log.flush()
    assert not world.log.is_maintenance_due(world.clock_ms)


def test_changed_options_count_from_the_next_append(world: Any) -> None:
    world.append_many(2)
    world.configure(internal_segment_bytes="200")
    world.append()
    assert world.log.base_offsets == [0, 2]


def test_a_closed_log_takes_nothing_more(world: Any) -> None:
    """It would come after the checkpoints by which the next start knows the end without reading the log."""
    world.append_many(3)
    assert world.directory.close()
    log = world.log
    changes: list[Callable[[], object]] = [
        lambda: world.stage(world.batch()),
        lambda: log.append_as_follower(world.batch(), leader_epoch=0, now_ms=world.clock_ms),
        lambda: log.cut_to(1),
        lambda: log.start_over_at(7),
        lambda: log.delete_records(2),
    ]
    for change in changes:
        with pytest.raises(KafkaStorageError, match="topic-0 is closed: the node shuts down"):
            change()
    assert log.end_offset == 3
    assert world.kill_and_reopen().end_offset == 3
