from __future__ import annotations

import pytest

from millbeck.raft.effects import AppendLeaderChange, MoveHighWatermark, PersistState
from millbeck.raft.events import LogFlushed, ShutdownRequested, Started
from millbeck.raft.machine import QuorumMachine, QuorumNotSupported, Role
from millbeck.raft.quorum_state import QuorumState
from millbeck.records.control import LeaderChange, VoterId


def _machine(state: QuorumState | None = None) -> QuorumMachine:
    return QuorumMachine(node_id=1, voters=(1,), state=state)


def _started(end_offset: int = 0, epoch: int = 0) -> Started:
    return Started(log_end_offset=end_offset, log_last_epoch=epoch)


def test_the_vote_is_persisted_first_then_leadership_then_the_leader_change() -> None:
    machine = _machine()
    vote, leadership, change = machine.step(_started())
    assert vote == PersistState(state=QuorumState(leader_epoch=1, voted_id=1, current_voters=(1,)))
    assert leadership == PersistState(state=QuorumState(leader_epoch=1, leader_id=1, current_voters=(1,)))
    voters = (VoterId(node_id=1),)
    assert change == AppendLeaderChange(value=LeaderChange(leader_id=1, voters=voters, granting_voters=voters), epoch=1)
    assert (machine.role, machine.epoch, machine.is_leader) == (Role.LEADER, 1, True)


EPOCHS = {
    "new": (None, 0, 1),
    "restart": (QuorumState(leader_epoch=4, leader_id=1, current_voters=(1,)), 4, 5),
    "died as candidate": (QuorumState(leader_epoch=5, voted_id=1, current_voters=(1,)), 4, 6),
    "state was lost": (None, 7, 8),
    "state is older than the log": (QuorumState(leader_epoch=2), 9, 10),
}


@pytest.mark.parametrize(("state", "log_epoch", "expected"), EPOCHS.values(), ids=EPOCHS.keys())
def test_no_epoch_is_led_twice(state: QuorumState | None, log_epoch: int, expected: int) -> None:
    machine = _machine(state)
    persisted = [effect for effect in machine.step(_started(10, log_epoch)) if isinstance(effect, PersistState)]
    assert machine.epoch == expected
    assert [effect.state.leader_epoch for effect in persisted] == [expected, expected]


def test_nothing_is_committed_before_a_record_of_the_epoch() -> None:
    machine = _machine()
    machine.step(_started(end_offset=20, epoch=3))
    assert machine.step(LogFlushed(end_offset=20)) == []
    assert machine.high_watermark == -1
    assert machine.step(LogFlushed(end_offset=21)) == [MoveHighWatermark(high_watermark=21)]


def test_the_high_watermark_never_goes_back() -> None:
    machine = _machine()
    machine.step(_started())
    assert machine.step(LogFlushed(end_offset=5)) == [MoveHighWatermark(high_watermark=5)]
    assert machine.step(LogFlushed(end_offset=5)) == []
    assert machine.step(LogFlushed(end_offset=3)) == []
    assert machine.high_watermark == 5


def test_who_resigned_commits_nothing() -> None:
    machine = _machine()
    assert machine.step(LogFlushed(end_offset=5)) == []
    machine.step(_started())
    assert machine.step(ShutdownRequested()) == []
    assert (machine.role, machine.is_leader) == (Role.RESIGNED, False)
    assert machine.step(LogFlushed(end_offset=5)) == []


def test_a_process_starts_once() -> None:
    machine = _machine()
    machine.step(_started())
    with pytest.raises(AssertionError, match="started while leader"):
        machine.step(_started())


@pytest.mark.parametrize("voters", [(2,), (1, 2, 3), ()], ids=["another", "three", "none"])
def test_other_quorums_are_refused_by_name(voters: tuple[int, ...]) -> None:
    with pytest.raises(QuorumNotSupported, match="node 1 can only be in a quorum of itself"):
        QuorumMachine(node_id=1, voters=voters, state=None)


def test_invariants_name_what_is_wrong() -> None:
    machine = _machine()
    machine.step(_started(end_offset=9))
    machine.high_watermark = 4
    with pytest.raises(AssertionError, match="does not reach into the epoch"):
        machine.check_invariants()
