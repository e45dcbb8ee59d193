from __future__ import annotations

import random

from millbeck.raft.messages import EpochEnd, SnapshotKey
from millbeck.raft.voters import VoterSet
from millbeck.records.control import KRaftVersion, LeaderChange
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog, MemorySnapshot, PayloadTable, decode


def _log(*epochs: int) -> MemoryLog:
    log = MemoryLog(MemorySnapshot(SnapshotKey(0, 0), 0, VoterSet()))
    for epoch in epochs:
        log.append(LogEntry(epoch, epoch * 10))
    return log


def test_epochs_end_where_the_next_begins() -> None:
    log = _log(1, 1, 3)
    assert [log.end_of_epoch(epoch) for epoch in (0, 1, 2, 3, 9)] == [
        EpochEnd(0, 0),
        EpochEnd(1, 2),
        EpochEnd(1, 2),
        EpochEnd(3, 3),
        EpochEnd(3, 3),
    ]
    assert (log.last_epoch, log.epoch_before(2), log.epoch_before(0)) == (3, 1, 0)


def test_power_takes_only_what_was_not_flushed() -> None:
    for seed in range(20):
        log = _log(1, 1)
        log.flush()
        log.append(LogEntry(2, 5))
        log.lose_power(random.Random(seed))
        assert 2 <= log.end_offset <= 3


def test_a_snapshot_stands_for_the_beginning() -> None:
    log = _log(1, 1, 2)
    log.begin_with(MemorySnapshot(SnapshotKey(2, 1), 0, VoterSet()))
    assert (log.start_offset, log.end_offset, log.snapshot) == (2, 3, SnapshotKey(2, 1))
    log.start_over(MemorySnapshot(SnapshotKey(9, 4), 0, VoterSet()))
    assert (log.end_offset, log.flushed_offset, log.last_epoch) == (9, 9, 4)
    log.truncate(0)
    assert log.end_offset == 9


def test_records_come_back_as_they_were() -> None:
    log = _log(1, 2)
    assert decode(log.read(1, 5)) == [(1, LogEntry(2, 20))]
    payloads = PayloadTable()
    log.append(LogEntry(3, payloads.new(LeaderChange(leader_id=1, voters=(), granting_voters=()))))
    log.append(LogEntry(3, payloads.new(KRaftVersion(kraft_version=1))))
    assert log.changes(payloads) == [(3, KRaftVersion(kraft_version=1))]
