"""Each invariant is seen to be violated: an observer that never complains proves nothing."""

from __future__ import annotations

import pytest

from millbeck.raft.messages import SnapshotKey
from millbeck.raft.voters import ReplicaKey, VoterSet
from millbeck.simulation.raft.bench import directory, voter
from millbeck.simulation.raft.checks import Checks, RaftViolation
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog, MemorySnapshot

ONE, TWO = ReplicaKey(1, directory(1)), ReplicaKey(2, directory(2))


def _log(*epochs: int, flushed: int = 0) -> MemoryLog:
    log = MemoryLog(MemorySnapshot(SnapshotKey(0, 0), 0, VoterSet()))
    for epoch in epochs:
        log.append(LogEntry(epoch, epoch))
    log.flushed_offset = flushed
    return log


def test_two_leaders_of_an_epoch() -> None:
    checks = Checks()
    checks.leads(ONE, 1, 5, _log())
    checks.leads(ONE, 1, 5, _log())
    for key, incarnation in ((TWO, 1), (ONE, 2)):
        with pytest.raises(RaftViolation, match="R1"):
            checks.leads(key, incarnation, 5, _log())


def test_two_votes_in_an_epoch() -> None:
    checks = Checks()
    checks.votes_for(ONE, 5, TWO)
    checks.votes_for(ONE, 5, TWO)
    with pytest.raises(RaftViolation, match="R2"):
        checks.votes_for(ONE, 5, ONE)


def test_logs_that_do_not_match() -> None:
    checks = Checks()
    checks.appended(ONE, _log(1, 3), 1)
    with pytest.raises(RaftViolation, match="R3"):
        checks.appended(TWO, _log(2, 3), 1)


def test_a_leader_without_what_is_committed() -> None:
    checks = Checks()
    checks.commits(ONE, _log(1, 1), 0, 2)
    with pytest.raises(RaftViolation, match="R4"):
        checks.leads(TWO, 1, 5, _log(1))
    with pytest.raises(RaftViolation, match="R4"):
        checks.leads(TWO, 1, 6, _log(1, 2))


def test_commits_that_go_back_or_differ() -> None:
    checks = Checks()
    checks.commits(ONE, _log(1, 1), 0, 2)
    with pytest.raises(RaftViolation, match="R7"):
        checks.commits(ONE, _log(1, 1), 2, 1)
    with pytest.raises(RaftViolation, match="is committed"):
        checks.commits(TWO, _log(2, 2), 0, 2)
    with pytest.raises(RaftViolation, match="ends at"):
        checks.commits(TWO, _log(1), 0, 2)
    with pytest.raises(RaftViolation, match="R7"):
        checks.persists(ONE, 5, 4)


def test_a_commit_that_is_not_on_a_majority_of_disks() -> None:
    checks = Checks()
    voters = VoterSet.of((voter(1), voter(2), voter(3)))
    log = _log(1, 1, flushed=2)
    checks.commits(ONE, log, 0, 2)
    checks.leader_commits(2, voters, [(ONE, log), (TWO, _log(1, 1, flushed=2))], 1)
    with pytest.raises(RaftViolation, match="R8"):
        checks.leader_commits(2, voters, [(ONE, log), (TWO, _log(1, 1, flushed=1))], 1)


def test_cuts_that_must_not_be() -> None:
    checks = Checks()
    checks.truncates(ONE, 5, 5, is_leader=False)
    with pytest.raises(RaftViolation, match="R5"):
        checks.truncates(ONE, 5, 0, is_leader=True)
    with pytest.raises(RaftViolation, match="below its high watermark"):
        checks.truncates(ONE, 4, 5, is_leader=False)
