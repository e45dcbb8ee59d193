"""Where logs part: compared with what a reader of both would find, record by record."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.raft.log_view import divergence, end_of, snapshot_needed, truncation_offset
from millbeck.raft.messages import EpochEnd, SnapshotKey
from millbeck.raft.voters import VoterSet
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog, MemorySnapshot


def log_of(epochs: list[int], start: SnapshotKey | None = None) -> MemoryLog:
    log = MemoryLog(MemorySnapshot(start or SnapshotKey(0, 0), 0, VoterSet()))
    for offset, epoch in enumerate(epochs):
        log.append(LogEntry(epoch, offset * 100 + epoch))
    return log


# Two logs that raft could have made: they agree up to some point, and beyond it no epoch is in both.
PREFIXES = st.lists(st.integers(1, 3), max_size=4).map(sorted)
OWN_TAILS = st.lists(st.sampled_from([4, 6, 8]), max_size=4).map(sorted)
LEADER_TAILS = st.lists(st.sampled_from([5, 7, 9]), min_size=1, max_size=4).map(sorted)


@given(PREFIXES, OWN_TAILS, LEADER_TAILS)
def test_cutting_and_asking_again_finds_the_common_prefix(
    prefix: list[int], own: list[int], leaders: list[int]
) -> None:
    follower, leader = log_of(prefix + own), log_of(prefix + leaders)
    for _ in range(len(own) + len(prefix) + 2):
        end = end_of(follower)
        diverging = divergence(leader, end.end_offset, end.epoch)
        if diverging is None:
            break
        follower.truncate(truncation_offset(follower, diverging))
    assert [entry.epoch for entry in follower.entries] == prefix


@given(PREFIXES, LEADER_TAILS)
def test_a_prefix_does_not_diverge(prefix: list[int], leaders: list[int]) -> None:
    leader = log_of(prefix + leaders)
    for count in range(len(prefix + leaders) + 1):
        end = end_of(log_of((prefix + leaders)[:count]))
        assert divergence(leader, end.end_offset, end.epoch) is None


def test_a_snapshot_is_needed_for_what_the_log_no_longer_holds() -> None:
    log = log_of([5, 6], SnapshotKey(10, 4))
    snapshot = SnapshotKey(10, 4)
    for offset, epoch in ((0, 0), (9, 4), (10, 3), (10, 5), (12, 3)):
        assert snapshot_needed(log, offset, epoch) == snapshot
    for offset, epoch in ((10, 4), (11, 5), (12, 6), (12, 4)):
        assert snapshot_needed(log, offset, epoch) is None
    assert divergence(log, 10, 4) is None
    assert divergence(log, 12, 4) == EpochEnd(4, 10)
    assert snapshot_needed(log_of([1]), 0, 0) is None
