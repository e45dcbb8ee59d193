"""Elections: who may stand, who may vote, and what is on disk before anybody hears of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from millbeck.raft.effects import AppendControl, Effect, PersistState, SendRequest, SendResponse
from millbeck.raft.elections import BACKOFF_MS_FIRST, PRE_VOTE_AGAIN_MS
from millbeck.raft.events import ShutdownRequested
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    INVALID_VOTER_KEY,
    BeginEpochRequest,
    EndEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    Response,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.options import QuorumOptions
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import Role
from millbeck.raft.voters import Leader, ReplicaKey, VoterHistory
from millbeck.records.control import VoterEndpoint
from millbeck.simulation.raft.bench import BenchMember, asks, directory, only


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def ballot(epoch: int, node_id: int = 2, *, last: EpochEnd | None = None, is_pre_vote: bool = False) -> VoteRequest:
    return VoteRequest(epoch=epoch, candidate=key(node_id), log_end=last or EpochEnd(0, 0), is_pre_vote=is_pre_vote)


def verdict(effects: list[Effect]) -> VoteResponse:
    (answer,) = only(effects, SendResponse)
    assert isinstance(answer.reply, VoteResponse)
    return answer.reply


def granted(
    member: BenchMember, votes: dict[int, VoteRequest], node_id: int, *, is_granted: bool = True
) -> list[Effect]:
    reply = VoteResponse(is_granted=is_granted, leader=Leader(epoch=member.machine.epoch))
    return member.answered(node_id, votes[node_id], reply)


def candidate(node_id: int = 1, **options: object) -> tuple[BenchMember, dict[int, VoteRequest]]:
    """A member that has won the pre-vote, and the votes it asks for in earnest."""
    member = BenchMember(node_id, **options)  # type: ignore[arg-type]
    member.start()
    votes = asks(member.let_time_pass(), VoteRequest)
    effects = granted(member, votes, min(votes))
    assert member.role is Role.CANDIDATE
    return member, asks(effects, VoteRequest)


def test_a_voter_without_a_leader_first_asks_around_and_promises_nothing() -> None:
    member = BenchMember(1, epochs=[1, 2], state=QuorumState(leader_epoch=2))
    member.start()
    effects = member.let_time_pass()
    votes = asks(effects, VoteRequest)
    assert sorted(votes) == [2, 3]
    assert votes[2] == VoteRequest(
        epoch=2, candidate=key(1), log_end=EpochEnd(2, 2), is_pre_vote=True, voter=ReplicaKey(2)
    )
    assert only(effects, PersistState) == []
    assert (member.role, member.machine.epoch) == (Role.PROSPECTIVE, 2)


def test_a_majority_of_pre_votes_makes_a_candidate_with_its_vote_on_disk_before_it_asks() -> None:
    member = BenchMember(1)
    member.start()
    votes = asks(member.let_time_pass(), VoteRequest)
    effects = granted(member, votes, 3)
    assert isinstance(effects[0], PersistState)
    assert (effects[0].state.leader_epoch, effects[0].state.voted_id) == (1, 1)
    assert sorted(asks(effects[1:], VoteRequest)) == [2, 3]
    assert not any(ask.is_pre_vote for ask in asks(effects, VoteRequest).values())


def test_a_majority_of_votes_makes_a_leader_with_that_on_disk_before_its_first_record() -> None:
    member, votes = candidate()
    effects = granted(member, votes, 2)
    kinds = [type(effect) for effect in effects]
    assert kinds.index(PersistState) < kinds.index(AppendControl)
    assert sorted(asks(effects, BeginEpochRequest)) == [2, 3]
    (append,) = only(effects, AppendControl)
    assert [each.node_id for each in append.values[0].granting_voters] == [1, 2]  # type: ignore[union-attr]


def test_voters_are_asked_by_the_listener_that_this_node_uses() -> None:
    member = BenchMember(1, is_static=False)
    safe = VoterEndpoint(name="SAFE", host="h", port=77)
    voters = member.machine.history.latest
    for each in voters.voters:
        voters = voters.with_changed(replace(each, endpoints=(*each.endpoints, safe)))
    member.machine.history = VoterHistory(voters, 1)
    member.machine.listener_name = "SAFE"
    member.start()
    sent = only(member.let_time_pass(), SendRequest)
    assert [(each.node_id, each.endpoint) for each in sent] == [(2, safe), (3, safe)]


def test_a_minority_makes_nothing() -> None:
    member, votes = _five()
    granted(member, votes, 2)
    assert member.role is Role.CANDIDATE
    granted(member, votes, 3)
    assert member.role is Role.LEADER


def _five() -> tuple[BenchMember, dict[int, VoteRequest]]:
    member = BenchMember(1, voters=(1, 2, 3, 4, 5))
    member.start()
    votes = asks(member.let_time_pass(), VoteRequest)
    granted(member, votes, 2)
    return member, asks(granted(member, votes, 3), VoteRequest)


def test_a_lost_pre_vote_leaves_the_epoch_alone_and_returns_to_the_leader_it_knew() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=4, leader_id=3), epochs=[4])
    member.start()
    votes = asks(member.let_time_pass(), VoteRequest)
    for node_id in (2, 3):
        granted(member, votes, node_id, is_granted=False)
    member.let_time_pass()
    assert (member.role, member.machine.leader.node_id, member.machine.epoch) == (Role.FOLLOWER, 3, 4)


def test_a_lost_election_rests_and_asks_around_again_in_the_same_epoch() -> None:
    member, votes = candidate()
    for node_id in (2, 3):
        granted(member, votes, node_id, is_granted=False)
    assert member.role is Role.CANDIDATE
    effects = member.let_time_pass()
    assert (member.role, member.machine.epoch) == (Role.PROSPECTIVE, 1)
    assert all(ask.is_pre_vote for ask in asks(effects, VoteRequest).values())


@pytest.mark.parametrize("refused_first", [True, False])
def test_split_votes_are_not_waited_for_when_who_could_decide_cannot_be_reached(refused_first: bool) -> None:
    member, votes = candidate()
    answers: list[Callable[[], object]] = [
        lambda: granted(member, votes, 2, is_granted=False),
        lambda: member.answered(3, votes[3], None),
    ]
    for answer in answers if refused_first else reversed(answers):
        answer()
    asked_ms = member.now_ms
    while member.role is Role.CANDIDATE:
        member.let_time_pass()
    assert (member.role, member.machine.epoch) == (Role.PROSPECTIVE, 1)
    assert member.now_ms - asked_ms <= 2 * BACKOFF_MS_FIRST


def test_who_only_asks_around_waits_for_everybody() -> None:
    member = BenchMember(1)
    member.start()
    votes = asks(member.let_time_pass(), VoteRequest)
    granted(member, votes, 2, is_granted=False)
    member.answered(3, votes[3], None)
    assert asks(member.let_time_pass(), VoteRequest)[3].is_pre_vote
    assert member.role is Role.PROSPECTIVE


def test_who_refused_a_pre_vote_is_asked_again_and_may_have_missed_the_leader_meanwhile() -> None:
    member = BenchMember(1)
    member.start()
    votes = asks(member.let_time_pass(), VoteRequest)
    asked_ms = member.now_ms
    granted(member, votes, 2, is_granted=False)
    again: dict[int, VoteRequest] = {}
    while 2 not in again:
        again = asks(member.let_time_pass(), VoteRequest)
    assert member.now_ms - asked_ms == PRE_VOTE_AGAIN_MS
    assert again[2] == votes[2]
    granted(member, again, 2)
    assert member.role is Role.CANDIDATE


def test_a_candidate_takes_a_no_for_an_answer() -> None:
    member, votes = candidate()
    granted(member, votes, 2, is_granted=False)
    deadline_ms = member.now_ms + PRE_VOTE_AGAIN_MS
    while member.machine.next_deadline_ms <= deadline_ms:
        assert 2 not in asks(member.let_time_pass(), VoteRequest)


def test_an_undecided_election_ends_with_its_timeout() -> None:
    member, _ = candidate()
    deadline_ms = member.machine.next_deadline_ms
    member.let_time_pass()
    assert member.role is Role.PROSPECTIVE
    assert deadline_ms >= 1_000 + 1_000


def test_who_does_not_answer_is_asked_again() -> None:
    member, votes = candidate()
    assert member.answered(2, votes[2], None) == []
    again = asks(member.let_time_pass(), VoteRequest)
    assert sorted(again) == [2]


def test_old_answers_do_not_count() -> None:
    member, votes = candidate()
    pre_vote = VoteRequest(epoch=0, candidate=key(1), log_end=EpochEnd(0, 0), is_pre_vote=True, voter=ReplicaKey(2))
    assert granted(member, {2: pre_vote}, 2) == []
    member.answered(2, votes[2], VoteResponse(is_granted=True, leader=Leader(epoch=0)))
    assert member.role is Role.CANDIDATE
    member.answered(3, votes[3], Response(error_code=INVALID_VOTER_KEY, leader=Leader(epoch=1)))
    assert member.role is Role.CANDIDATE


def test_an_answer_with_a_higher_epoch_ends_the_candidacy() -> None:
    member, votes = candidate()
    effects = member.answered(2, votes[2], VoteResponse(leader=Leader(epoch=7)))
    assert (member.role, member.machine.epoch) == (Role.UNATTACHED, 7)
    assert only(effects, PersistState)[0].state == QuorumState(leader_epoch=7, current_voters=(1, 2, 3))


def test_a_vote_is_on_disk_before_it_is_given() -> None:
    member = BenchMember(1)
    member.start()
    effects = member.asked(ballot(5))
    kinds = [type(effect) for effect in effects]
    assert kinds[:3] == [PersistState, PersistState, SendResponse]
    assert only(effects, PersistState)[-1].state.voted_id == 2
    assert verdict(effects).is_granted


def test_one_vote_an_epoch() -> None:
    member = BenchMember(1)
    member.start()
    assert verdict(member.asked(ballot(5, 2))).is_granted
    assert not verdict(member.asked(ballot(5, 3))).is_granted
    assert verdict(member.asked(ballot(5, 2))).is_granted
    assert verdict(member.asked(ballot(6, 3))).is_granted


def test_a_vote_survives_a_restart() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=5, voted_id=2))
    member.start()
    assert not verdict(member.asked(ballot(5, 3))).is_granted
    assert verdict(member.asked(ballot(5, 2))).is_granted


@pytest.mark.parametrize(
    ("last", "is_granted"),
    [
        (EpochEnd(2, 3), True),
        (EpochEnd(2, 4), True),
        (EpochEnd(3, 1), True),
        (EpochEnd(2, 2), False),
        (EpochEnd(1, 9), False),
    ],
)
def test_only_a_log_at_least_as_complete_gets_the_vote(last: EpochEnd, is_granted: bool) -> None:
    member = BenchMember(1, epochs=[1, 2, 2], state=QuorumState(leader_epoch=2))
    member.start()
    assert verdict(member.asked(ballot(5, last=last))).is_granted is is_granted
    assert verdict(member.asked(ballot(5, last=last, is_pre_vote=True))).is_granted is is_granted


def test_who_follows_a_leader_gives_no_vote_in_its_epoch() -> None:
    member = BenchMember(1)
    member.start()
    member.asked(BeginEpochRequest(epoch=5, leader_id=3))
    assert not verdict(member.asked(ballot(5))).is_granted
    assert member.role is Role.FOLLOWER


def test_pre_votes_are_refused_while_the_leader_is_heard_of() -> None:
    member = BenchMember(1)
    member.start()
    effects = member.asked(BeginEpochRequest(epoch=5, leader_id=3))
    assert verdict(member.asked(ballot(5, is_pre_vote=True))).is_granted
    fetch = asks(effects, FetchRequest)[3]
    member.answered(3, fetch, FetchResponse(leader=member.machine.leader, high_watermark=0))
    assert not verdict(member.asked(ballot(5, is_pre_vote=True))).is_granted
    assert member.role is Role.FOLLOWER


def test_a_pre_vote_changes_nothing_and_leaders_refuse_it() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=5, voted_id=3))
    member.start()
    effects = member.asked(ballot(5, is_pre_vote=True))
    assert verdict(effects).is_granted
    assert only(effects, PersistState) == []
    leader, votes = candidate()
    granted(leader, votes, 2)
    assert not verdict(leader.asked(ballot(1, is_pre_vote=True, last=EpochEnd(1, 99)))).is_granted


def test_what_can_not_be_is_refused() -> None:
    member = BenchMember(1)
    member.start()
    assert verdict(member.asked(ballot(5, last=EpochEnd(5, 1)))).error_code == INVALID_REQUEST
    assert verdict(member.asked(ballot(5, last=EpochEnd(6, 1), is_pre_vote=True))).error_code == INVALID_REQUEST
    assert verdict(member.asked(ballot(5, last=EpochEnd(0, -1)))).error_code == INVALID_REQUEST
    nobody = VoteRequest(epoch=5, candidate=ReplicaKey(-1), log_end=EpochEnd(0, 0))
    assert verdict(member.asked(nobody)).error_code == INVALID_REQUEST
    member.asked(ballot(9))
    assert verdict(member.asked(ballot(8))).error_code == FENCED_LEADER_EPOCH
    other = VoteRequest(epoch=9, candidate=key(2), log_end=EpochEnd(0, 0), voter=ReplicaKey(1, directory(1, 9)))
    assert verdict(member.asked(other)).error_code == INVALID_VOTER_KEY


def test_observers_neither_stand_nor_vote() -> None:
    member = BenchMember(9, options=QuorumOptions(can_vote=False))
    member.start()
    assert not verdict(member.asked(ballot(5))).is_granted
    member.let_time_pass()
    assert member.role is Role.UNATTACHED


def test_a_resigning_leader_names_successors_and_the_best_stands_at_once() -> None:
    leader, votes = candidate()
    granted(leader, votes, 2)
    leader.flush()
    for node_id, offset in ((2, 0), (3, 1)):
        leader.asked(FetchRequest(epoch=1, replica=key(node_id), offset=offset, last_epoch=1 if offset else 0))
    notices = asks(leader.step(ShutdownRequested()), EndEpochRequest)
    assert [successor.node_id for successor in notices[2].successors] == [3, 2]
    assert not leader.machine.is_stopped
    for node_id in (2, 3):
        leader.answered(node_id, notices[node_id], Response(leader=Leader(epoch=1)))
    assert leader.machine.is_stopped
    best, second = BenchMember(3), BenchMember(2)
    for member in (best, second):
        member.start()
        member.asked(BeginEpochRequest(epoch=1, leader_id=1))
        member.asked(notices[member.machine.node_id])
    assert best.role is Role.PROSPECTIVE
    assert second.role is Role.FOLLOWER
    assert second.machine.next_deadline_ms == second.now_ms + 100


def test_who_resigned_asks_around_when_nobody_else_did() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=4, leader_id=1), epochs=[4])
    notices = asks(member.start(), EndEpochRequest)
    member.answered(2, notices[2], None)
    assert sorted(asks(member.let_time_pass(), EndEpochRequest)) == [2]
    member.now_ms += 5_000
    effects = member.let_time_pass()
    assert member.role is Role.PROSPECTIVE
    assert len(only(effects, SendRequest)) == 2
