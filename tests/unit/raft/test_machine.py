"""The rules that no role owns: what a restart may do, what is persisted, and what members learn from each other."""

from __future__ import annotations

import doctest

import pytest

from millbeck.raft import machine
from millbeck.raft.effects import (
    AppendControl,
    ChangeLeader,
    MoveHighWatermark,
    PersistState,
    SendRequest,
    SendResponse,
)
from millbeck.raft.events import LogFlushed, ProcessStarted, ResignRequested, ShutdownRequested, TimerExpired
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    NOT_AVAILABLE,
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    VersionsRequest,
    VoteRequest,
)
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import NEVER_MS, Role
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.records.control import LeaderChange, VoterId
from millbeck.simulation.raft.bench import BenchMember, asks, directory, endpoint, only


def alone(state: QuorumState | None = None, epochs: list[int] | None = None) -> BenchMember:
    return BenchMember(1, voters=(1,), state=state, epochs=epochs)


def test_alone_the_vote_is_persisted_first_then_leadership_then_the_leader_change() -> None:
    member = alone()
    effects = member.start()
    vote, leadership, change = effects[:3]
    assert vote == PersistState(state=QuorumState(leader_epoch=1, voted_id=1, current_voters=(1,)))
    assert leadership == PersistState(state=QuorumState(leader_epoch=1, leader_id=1, current_voters=(1,)))
    voters = (VoterId(node_id=1),)
    value = LeaderChange(leader_id=1, voters=voters, granting_voters=voters)
    assert change == AppendControl(values=(value,), epoch=1)
    assert only(effects, SendRequest) == []
    assert (member.role, member.machine.epoch, member.machine.is_leader) == (Role.LEADER, 1, True)
    assert member.machine.next_deadline_ms == NEVER_MS


EPOCHS = {
    "new": (None, [], 1),
    "restart": (QuorumState(leader_epoch=4, leader_id=1, current_voters=(1,)), [4], 5),
    "died as candidate": (QuorumState(leader_epoch=5, voted_id=1, current_voters=(1,)), [4], 6),
    "state was lost": (None, [7], 8),
    "state is older than the log": (QuorumState(leader_epoch=2), [9], 10),
}


@pytest.mark.parametrize(("state", "epochs", "expected"), EPOCHS.values(), ids=EPOCHS.keys())
def test_no_epoch_is_led_twice(state: QuorumState | None, epochs: list[int], expected: int) -> None:
    member = alone(state, epochs)
    persisted = only(member.start(), PersistState)
    assert member.machine.epoch == expected
    assert [effect.state.leader_epoch for effect in persisted][-2:] == [expected, expected]


def test_alone_what_is_flushed_is_committed_from_the_epochs_first_record_on() -> None:
    member = alone(epochs=[3] * 20)
    member.start()
    assert member.step(LogFlushed(end_offset=20)) == []
    assert member.flush() == [MoveHighWatermark(high_watermark=21)]
    assert member.flush() == []


def test_who_led_before_a_restart_is_resigned_in_that_epoch_and_says_so() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=4, leader_id=1), epochs=[4, 4])
    effects = member.start()
    assert (member.role, member.machine.epoch) == (Role.RESIGNED, 4)
    assert sorted(asks(effects, EndEpochRequest)) == [2, 3]
    assert only(effects, AppendControl) == []
    vote = VoteRequest(epoch=4, candidate=ReplicaKey(2, directory(2)), log_end=EpochEnd(3, 9))
    (answer,) = only(member.asked(vote), SendResponse)
    assert not answer.reply.is_granted  # type: ignore[attr-defined]


def test_a_restarted_candidate_does_not_stand_in_the_same_epoch() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=4, voted_id=1), epochs=[3])
    member.start()
    assert member.role is Role.UNATTACHED
    assert member.machine.voted.node_id == 1


def test_a_restarted_follower_goes_on_following() -> None:
    state = QuorumState(leader_epoch=4, leader_id=2, voted_id=2, current_voters=(1, 2, 3))
    member = BenchMember(1, state=state, epochs=[4])
    effects = member.start()
    assert (member.role, member.machine.leader.node_id, member.machine.voted.node_id) == (Role.FOLLOWER, 2, 2)
    assert only(effects, PersistState) == []


def test_without_its_file_a_voter_promises_nothing_before_it_has_followed() -> None:
    member = BenchMember(1, epochs=[4, 4])
    member.start()
    vote = VoteRequest(epoch=9, candidate=ReplicaKey(2, directory(2)), log_end=EpochEnd(8, 90))
    (answer,) = only(member.asked(vote), SendResponse)
    assert not answer.reply.is_granted  # type: ignore[attr-defined]
    member.let_time_pass()
    assert member.role is Role.UNATTACHED


def test_a_new_leader_is_believed_and_persisted_before_the_answer() -> None:
    member = BenchMember(1)
    member.start()
    effects = member.asked(BeginEpochRequest(epoch=3, leader_id=2))
    assert isinstance(effects[0], PersistState)
    assert effects[0].state.leader_id == 2
    kinds = [type(effect) for effect in effects]
    assert kinds.index(PersistState) < kinds.index(SendResponse)
    assert only(effects, ChangeLeader) == [ChangeLeader(leader=Leader(node_id=2, epoch=3, endpoint=endpoint(2)))]


def test_an_old_epoch_is_fenced_and_told_of_the_new_one() -> None:
    member = BenchMember(1)
    member.start()
    member.asked(BeginEpochRequest(epoch=3, leader_id=2))
    for ask in (BeginEpochRequest(epoch=2, leader_id=3), EndEpochRequest(epoch=2, leader_id=3)):
        (answer,) = only(member.asked(ask), SendResponse)
        assert answer.reply.error_code == FENCED_LEADER_EPOCH
        assert (answer.reply.leader.node_id, answer.reply.leader.epoch) == (2, 3)


def test_two_leaders_of_one_epoch_are_not_believed() -> None:
    member = BenchMember(1)
    member.start()
    member.asked(BeginEpochRequest(epoch=3, leader_id=2))
    (answer,) = only(member.asked(BeginEpochRequest(epoch=3, leader_id=3)), SendResponse)
    assert answer.reply.error_code == INVALID_REQUEST
    assert member.machine.leader.node_id == 2


def test_what_is_meant_for_another_directory_is_refused() -> None:
    member = BenchMember(1, is_static=False)
    member.start()
    ask = BeginEpochRequest(epoch=3, leader_id=2, voter=ReplicaKey(1, directory(1, life=9)))
    (answer,) = only(member.asked(ask), SendResponse)
    assert answer.reply.error_code == INVALID_VOTER_KEY
    (answer,) = only(member.asked(VersionsRequest(replica=ReplicaKey(1))), SendResponse)
    assert answer.reply.error_code == INVALID_REQUEST


def test_dynamic_quorums_write_the_newer_file() -> None:
    member = BenchMember(1, voters=(1,), is_static=False)
    states = [effect.state for effect in only(member.start(), PersistState)]
    assert [(state.version, state.voted_directory_id, state.current_voters) for state in states] == [
        (1, directory(1), ()),
        (1, bytes(16), ()),
    ]


def test_a_process_that_stops_takes_leave_and_answers_no_more() -> None:
    member = BenchMember(2)
    member.start()
    member.asked(BeginEpochRequest(epoch=3, leader_id=1))
    member.step(ShutdownRequested())
    assert member.machine.is_stopped
    (answer,) = only(member.asked(BeginEpochRequest(epoch=4, leader_id=1)), SendResponse)
    assert answer.reply.error_code == NOT_AVAILABLE
    alone_member = alone()
    alone_member.start()
    alone_member.step(ShutdownRequested())
    assert (alone_member.role, alone_member.machine.is_stopped) == (Role.RESIGNED, True)
    assert alone_member.step(LogFlushed(end_offset=5)) == []


def test_a_controller_can_have_its_node_resign() -> None:
    member = alone()
    member.start()
    member.step(ResignRequested(epoch=0))
    assert member.role is Role.LEADER
    member.step(ResignRequested(epoch=1))
    assert member.role is Role.RESIGNED


def test_nothing_happens_before_its_time() -> None:
    member = BenchMember(1)
    member.start()
    assert member.step(TimerExpired()) == []
    assert member.role is Role.UNATTACHED


def test_invariants_name_what_is_wrong() -> None:
    member = alone()
    member.start()
    member.machine.state = QuorumState(leader_epoch=1, leader_id=2)
    with pytest.raises(AssertionError, match="leader, but the state names 2"):
        member.machine.check_invariants()
    with pytest.raises(AssertionError, match="epoch 0 after 1"):
        member.machine.persist(epoch=0)
    assert ProcessStarted() == ProcessStarted()


def test_the_example_of_the_loop_runs() -> None:
    result = doctest.testmod(machine)
    assert result.attempted > 0
    assert result.failed == 0
