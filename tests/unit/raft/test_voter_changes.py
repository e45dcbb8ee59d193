"""Changing the voters: one at a time, only when the change before is committed, and counted from the append on."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import (
    DuplicateVoter,
    InvalidRequest,
    InvalidUpdateVersion,
    RequestTimedOut,
    UnsupportedVersion,
    VoterNotFound,
)
from millbeck.raft.effects import AppendControl, Effect, MoveHighWatermark, SendResponse
from millbeck.raft.events import UpgradeRequested
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    NOT_LEADER,
    AddVoterRequest,
    BeginEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    RemoveVoterRequest,
    Response,
    UpdateVoterRequest,
    VersionsRequest,
    VersionsResponse,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.roles import Role
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.records.control import KRaftVersion, Voter, Voters
from millbeck.simulation.raft.bench import TIMEOUTS, TOKEN, BenchMember, asks, directory, endpoint, only, voter


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id))


def leader(*, voters: tuple[int, ...] = (1, 2, 3), is_static: bool = False, commits: bool = True) -> BenchMember:
    member = BenchMember(1, voters=voters, is_static=is_static)
    member.start()
    win(member, member.let_time_pass() if len(voters) > 1 else [])
    if commits:
        commit(member, *voters)
    return member


def win(member: BenchMember, effects: list[Effect]) -> None:
    """Everybody who is asked for a vote gives it."""
    while member.role is not Role.LEADER:
        votes, effects = asks(effects, VoteRequest), []
        for node_id, vote in votes.items():
            reply = VoteResponse(is_granted=True, leader=Leader(epoch=member.machine.epoch))
            effects += member.answered(node_id, vote, reply)


def commit(member: BenchMember, *node_ids: int) -> list[Effect]:
    """These voters have everything on disk."""
    effects = member.flush()
    for node_id in node_ids:
        if node_id != 1:
            effects += fetch(member, node_id)
    return effects


def fetch(member: BenchMember, node_id: int) -> list[Effect]:
    log = member.log
    ask = FetchRequest(
        epoch=member.machine.epoch, replica=key(node_id), offset=log.end_offset, last_epoch=log.last_epoch
    )
    return member.asked(ask)


def error_of(effects: list[Effect]) -> int:
    (answer,) = [each for each in only(effects, SendResponse) if type(each.reply) is Response]
    return answer.reply.error_code


def ids(member: BenchMember) -> tuple[int, ...]:
    return member.machine.history.latest.ids


def adding(node_id: int = 4, **more: Any) -> AddVoterRequest:
    new = Voter(node_id=node_id, directory_id=directory(node_id), endpoints=(endpoint(node_id),))
    return AddVoterRequest(voter=new, **more)


def said_versions(member: BenchMember, node_id: int = 4, *, most: int = 1) -> list[Effect]:
    return member.answered(node_id, VersionsRequest(replica=key(node_id)), VersionsResponse(kraft_version_max=most))


def test_a_new_voter_is_asked_what_it_can_do_then_appended_then_committed_by_the_new_majority() -> None:
    member = leader()
    fetch(member, 4)
    effects = member.asked(adding())
    assert list(asks(effects, VersionsRequest)) == [4]
    effects = said_versions(member)
    (append,) = only(effects, AppendControl)
    assert isinstance(append.values[0], Voters)
    assert ids(member) == (1, 2, 3, 4)
    assert list(asks(effects, BeginEpochRequest)) == [4], "the new voter hears of the epoch"
    assert only(effects, SendResponse) == []
    assert only(commit(member, 2), MoveHighWatermark) == [], "two of four are no majority"
    assert error_of(commit(member, 3)) == 0


def test_who_need_not_wait_is_answered_at_the_append() -> None:
    member = leader()
    fetch(member, 4)
    member.asked(adding(acknowledge_when_committed=False))
    assert error_of(said_versions(member)) == 0


def test_a_replica_that_lags_or_can_not_is_not_added() -> None:
    member = leader()
    member.asked(adding())
    assert error_of(said_versions(member)) == RequestTimedOut.code
    fetch(member, 4)
    member.asked(adding())
    assert error_of(said_versions(member, most=0)) == InvalidRequest.code
    member.asked(adding())
    assert error_of(member.answered(4, VersionsRequest(replica=key(4)), None)) == RequestTimedOut.code
    assert ids(member) == (1, 2, 3)


REFUSED = {
    "votes already": (adding(2), DuplicateVoter.code),
    "no listener": (
        AddVoterRequest(voter=Voter(node_id=9, directory_id=directory(9), endpoints=())),
        InvalidRequest.code,
    ),
    "not a voter": (RemoveVoterRequest(voter=key(9)), VoterNotFound.code),
    "another directory": (RemoveVoterRequest(voter=ReplicaKey(2, directory(2, 7))), VoterNotFound.code),
}


@pytest.mark.parametrize(("ask", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_what_makes_no_sense_is_refused(ask: Any, expected: int) -> None:
    member = leader()
    assert error_of(member.asked(ask)) == expected
    assert ids(member) == (1, 2, 3)


def test_the_last_voter_stays() -> None:
    member = leader(voters=(1,))
    assert error_of(member.asked(RemoveVoterRequest(voter=key(1)))) == InvalidRequest.code


def test_a_change_waits_for_the_epochs_first_commit_and_for_the_change_before() -> None:
    member = leader(commits=False)
    assert error_of(member.asked(RemoveVoterRequest(voter=key(2)))) == RequestTimedOut.code
    commit(member, 2, 3)
    assert only(member.asked(RemoveVoterRequest(voter=key(2))), AppendControl)
    assert error_of(member.asked(RemoveVoterRequest(voter=key(3)))) == RequestTimedOut.code
    member.now_ms += 2_000
    effects = member.let_time_pass()
    assert error_of(effects) == RequestTimedOut.code, "the caller's time is up, the record stays"
    assert ids(member) == (1, 3)
    assert error_of(member.asked(RemoveVoterRequest(voter=key(3)))) == RequestTimedOut.code
    commit(member, 3)
    assert only(member.asked(RemoveVoterRequest(voter=key(3))), AppendControl)


def test_a_leader_of_a_new_epoch_changes_nobody_before_it_has_committed_in_it() -> None:
    """What is not committed of an older epoch may hold another set, on a majority that this leader does not know."""
    member = leader()
    member.asked(BeginEpochRequest(epoch=2, leader_id=3))
    member.now_ms += 10_000
    win(member, member.let_time_pass())
    assert member.machine.history.latest_offset < member.machine.high_watermark, "the set is committed long ago"
    assert error_of(member.asked(RemoveVoterRequest(voter=key(2)))) == RequestTimedOut.code
    commit(member, 2)
    assert only(member.asked(RemoveVoterRequest(voter=key(2))), AppendControl)


def test_a_leader_that_is_no_voter_any_more_needs_a_majority_of_the_others_to_stay() -> None:
    member = leader()
    member.asked(RemoveVoterRequest(voter=key(1)))
    began_ms = member.now_ms
    member.now_ms += TIMEOUTS.check_quorum_ms // 2
    fetch(member, 2)
    member.now_ms = began_ms + TIMEOUTS.check_quorum_ms
    member.let_time_pass()
    assert member.role is Role.RESIGNED


def test_a_leader_that_is_removed_leads_until_that_is_committed_without_counting_itself() -> None:
    member = leader()
    member.asked(RemoveVoterRequest(voter=key(1)))
    assert only(member.flush(), MoveHighWatermark) == []
    assert only(fetch(member, 2), MoveHighWatermark) == []
    assert member.role is Role.LEADER
    effects = fetch(member, 3)
    assert only(effects, MoveHighWatermark) != []
    assert error_of(effects) == 0
    assert member.role is Role.RESIGNED
    assert not member.machine.is_electable


def test_a_removal_that_is_not_known_to_be_committed_lets_a_voter_stand() -> None:
    member = leader()
    member.asked(RemoveVoterRequest(voter=key(1)))
    assert not member.machine.is_voter
    assert member.machine.is_electable


def test_where_voters_are_in_files_they_can_not_be_changed() -> None:
    member = leader(is_static=True)
    assert error_of(member.asked(adding())) == UnsupportedVersion.code
    assert error_of(member.asked(RemoveVoterRequest(voter=key(2)))) == UnsupportedVersion.code
    nowhere = AddVoterRequest(voter=Voter(node_id=9, directory_id=directory(9), endpoints=()))
    assert error_of(member.asked(nowhere)) == InvalidRequest.code, "as in Kafka, the request is looked at first"


def test_others_than_the_leader_send_elsewhere() -> None:
    member = BenchMember(2, is_static=False)
    member.start()
    member.asked(BeginEpochRequest(epoch=3, leader_id=1))
    for ask in (adding(), RemoveVoterRequest(voter=key(3)), UpdateVoterRequest(epoch=3, voter=voter(3))):
        effects = member.asked(ask)
        assert error_of(effects) == NOT_LEADER
        assert only(effects, SendResponse)[0].reply.leader.node_id == 1


def test_a_voter_says_where_it_listens_now() -> None:
    member = leader()
    moved = Voter(node_id=2, directory_id=directory(2), endpoints=(endpoint(9),), kraft_version_max=1)
    effects = member.asked(UpdateVoterRequest(epoch=1, voter=moved))
    assert error_of(effects) == 0
    assert len(only(effects, AppendControl)) == 1
    assert member.machine.history.latest.endpoint_of(2, "") == endpoint(9)
    commit(member, 2, 3)
    assert only(member.asked(UpdateVoterRequest(epoch=1, voter=moved)), AppendControl) == []
    assert error_of(member.asked(UpdateVoterRequest(epoch=0, voter=moved))) == FENCED_LEADER_EPOCH
    assert error_of(member.asked(UpdateVoterRequest(epoch=1, voter=voter(9)))) == VoterNotFound.code
    unable = Voter(node_id=3, directory_id=directory(3), endpoints=(endpoint(3),), kraft_version_max=0)
    assert error_of(member.asked(UpdateVoterRequest(epoch=1, voter=unable))) == InvalidRequest.code


def test_leadership_lost_answers_who_waits_for_a_change() -> None:
    member = leader()
    member.asked(RemoveVoterRequest(voter=key(2)))
    effects = member.asked(BeginEpochRequest(epoch=9, leader_id=3))
    answers = {answer.reply.error_code for answer in only(effects, SendResponse) if answer.token == TOKEN}
    assert NOT_LEADER in answers


def test_a_set_that_the_next_leader_does_not_have_counts_no_more() -> None:
    member = leader()
    end_offset = member.log.end_offset
    member.asked(RemoveVoterRequest(voter=key(2)))
    member.asked(BeginEpochRequest(epoch=2, leader_id=3))
    assert ids(member) == (1, 3), "from its append on, whoever leads"
    ask = asks(member.flush(), FetchRequest)[3]
    cut = FetchResponse(leader=Leader(node_id=3, epoch=2), high_watermark=-1, diverging=EpochEnd(1, end_offset))
    member.answered(3, ask, cut)
    assert (member.log.end_offset, ids(member)) == (end_offset, (1, 2, 3))


def test_raising_the_version_needs_to_know_every_voter() -> None:
    member = leader(is_static=True)
    assert error_of(member.step(UpgradeRequested(token=TOKEN))) == InvalidUpdateVersion.code
    for node_id in (2, 3):
        assert error_of(member.asked(UpdateVoterRequest(epoch=1, voter=voter(node_id)))) == 0
    (append,) = only(member.step(UpgradeRequested(token=TOKEN)), AppendControl)
    assert append.values[0] == KRaftVersion(kraft_version=1)
    assert member.machine.history.kraft_version == 1
    assert [each.directory_id for each in member.machine.history.latest.voters] == [directory(n) for n in (1, 2, 3)]
    assert error_of(commit(member, 2)) == 0
    assert error_of(member.step(UpgradeRequested(token=TOKEN))) == 0
