"""Leading: who is answered with what, when something is committed, and when to let go."""

from __future__ import annotations

import pytest

from millbeck.raft import leading
from millbeck.raft.effects import AppendControl, Effect, MoveHighWatermark, SendResponse, ServeFetch, ServeSnapshot
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    INVALID_REQUEST,
    NOT_LEADER,
    UNKNOWN_LEADER_EPOCH,
    BeginEpochRequest,
    EpochEnd,
    FetchRequest,
    FetchResponse,
    Response,
    SnapshotKey,
    SnapshotRequest,
    VoteRequest,
    VoteResponse,
)
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import Leading, Role
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.records.control import KRaftVersion, LeaderChange, Voters
from millbeck.simulation.raft.bench import TIMEOUTS, BenchMember, asks, directory, endpoint, only


def key(node_id: int, life: int = 1) -> ReplicaKey:
    return ReplicaKey(node_id, directory(node_id, life))


def elected(**options: object) -> tuple[BenchMember, list[Effect]]:
    """A leader in the epoch after its log's, and what it did when it became that."""
    member = BenchMember(1, **options)  # type: ignore[arg-type]
    member.start()
    effects = member.let_time_pass()
    while member.role is not Role.LEADER:
        votes = asks(effects, VoteRequest)
        effects = []
        for node_id, vote in votes.items():
            reply = VoteResponse(is_granted=True, leader=Leader(epoch=member.machine.epoch))
            effects += member.answered(node_id, vote, reply)
    return member, effects


def fetch(member: BenchMember, node_id: int, offset: int, last_epoch: int | None = None, **more: int) -> list[Effect]:
    epoch = member.log.epoch_before(offset) if last_epoch is None else last_epoch
    ask = FetchRequest(
        epoch=more.get("epoch", member.machine.epoch), replica=key(node_id), offset=offset, last_epoch=epoch
    )
    return member.asked(ask)


def refusal(effects: list[Effect]) -> FetchResponse:
    (answer,) = only(effects, SendResponse)
    assert isinstance(answer.reply, FetchResponse)
    return answer.reply


def test_a_fetch_that_continues_the_log_is_served() -> None:
    member, _ = elected(epochs=[1, 2], state=QuorumState(leader_epoch=2))
    for offset in (0, 1, 2, 3):
        assert len(only(fetch(member, 2, offset), ServeFetch)) == 1


DIVERGING = {
    "an epoch that ended earlier": (3, 1, EpochEnd(1, 2)),
    "an epoch that is not in the log": (4, 2, EpochEnd(1, 2)),
    "beyond the end": (9, 3, EpochEnd(3, 4)),
}


@pytest.mark.parametrize(("offset", "epoch", "expected"), DIVERGING.values(), ids=DIVERGING.keys())
def test_a_log_that_differs_is_told_where(offset: int, epoch: int, expected: EpochEnd) -> None:
    member, _ = elected(epochs=[1, 1, 3, 3], state=QuorumState(leader_epoch=3))
    effects = fetch(member, 2, offset, epoch)
    assert refusal(effects).diverging == expected
    assert refusal(effects).error_code == 0
    role = member.machine.role_state
    assert isinstance(role, Leading)
    assert role.progress[key(2)].end_offset == -1


def test_who_is_behind_the_logs_start_is_sent_to_the_snapshot() -> None:
    member, _ = elected(start=SnapshotKey(10, 2), epochs=[2, 3], state=QuorumState(leader_epoch=3))
    for offset, epoch in ((0, 0), (9, 2), (10, 1), (11, 1)):
        assert refusal(fetch(member, 2, offset, epoch)).snapshot == SnapshotKey(10, 2)
    for offset, epoch in ((10, 2), (11, 2)):
        assert only(fetch(member, 2, offset, epoch), ServeFetch)


def test_epochs_are_compared_before_anything_else() -> None:
    member, _ = elected()
    assert refusal(fetch(member, 2, 0, 0, epoch=0)).error_code == FENCED_LEADER_EPOCH
    assert refusal(fetch(member, 2, 0, 0, epoch=2)).error_code == UNKNOWN_LEADER_EPOCH
    assert refusal(fetch(member, 2, -1, 0)).error_code == INVALID_REQUEST
    assert refusal(fetch(member, 2, 0, 2)).error_code == INVALID_REQUEST
    follower = BenchMember(2)
    follower.start()
    follower.asked(BeginEpochRequest(epoch=1, leader_id=1))
    reply = refusal(fetch(follower, 3, 0, 0))
    assert (reply.error_code, reply.leader.node_id) == (NOT_LEADER, 1)


def test_a_majority_that_has_it_on_disk_commits() -> None:
    member, _ = elected()
    member.propose(2)
    assert fetch(member, 2, 3) != []
    assert member.machine.high_watermark == -1, "the leader's own copy is not flushed"
    assert only(member.flush(), MoveHighWatermark) == [MoveHighWatermark(high_watermark=3)]
    member.propose()
    assert only(member.flush(), MoveHighWatermark) == []
    assert only(fetch(member, 3, 4), MoveHighWatermark) == [MoveHighWatermark(high_watermark=4)]
    assert only(fetch(member, 2, 4), MoveHighWatermark) == []


def test_two_followers_commit_without_the_leaders_disk() -> None:
    member, _ = elected()
    fetch(member, 2, 1)
    assert only(fetch(member, 3, 1), MoveHighWatermark) == [MoveHighWatermark(high_watermark=1)]
    assert member.log.flushed_offset == 0


def test_records_of_an_older_epoch_are_not_committed_by_counting() -> None:
    member, _ = elected(epochs=[1, 1, 1], state=QuorumState(leader_epoch=1))
    member.log.flushed_offset = 3
    assert only(fetch(member, 2, 3), MoveHighWatermark) == []
    assert only(fetch(member, 3, 3), MoveHighWatermark) == []
    assert member.machine.high_watermark == -1
    member.flush()
    assert only(fetch(member, 2, 4), MoveHighWatermark) == [MoveHighWatermark(high_watermark=4)]


def test_observers_do_not_count() -> None:
    member, _ = elected()
    member.flush()
    for node_id in (7, 8, 9):
        assert only(fetch(member, node_id, 1), MoveHighWatermark) == []
    assert member.machine.high_watermark == -1


def test_another_directory_of_a_voter_does_not_count() -> None:
    member, _ = elected(is_static=False)
    member.flush()
    ask = FetchRequest(epoch=1, replica=key(2, life=5), offset=3, last_epoch=1)
    assert only(member.asked(ask), MoveHighWatermark) == []


def test_what_a_static_voter_had_on_a_disk_that_was_replaced_does_not_count() -> None:
    member, _ = elected(voters=(1, 2))
    fetch(member, 2, 1)
    empty = FetchRequest(epoch=1, replica=key(2, life=5), offset=0, last_epoch=0)
    member.asked(empty)
    assert only(member.flush(), MoveHighWatermark) == []


def test_the_high_watermark_never_goes_back() -> None:
    member, _ = elected()
    member.propose(3)
    member.flush()
    fetch(member, 2, 4)
    assert only(fetch(member, 2, 2), MoveHighWatermark) == []
    assert member.machine.high_watermark == 4


def test_a_leader_without_followers_resigns_after_the_check() -> None:
    member, _ = elected()
    role = member.machine.role_state
    assert isinstance(role, Leading)
    began_ms = member.now_ms
    assert role.check_quorum_deadline_ms == began_ms + TIMEOUTS.check_quorum_ms
    member.now_ms += 2_000
    fetch(member, 2, 0)
    assert role.check_quorum_deadline_ms == member.now_ms + TIMEOUTS.check_quorum_ms
    member.now_ms += TIMEOUTS.check_quorum_ms
    member.let_time_pass()
    assert member.role is Role.RESIGNED


def test_an_observer_does_not_keep_a_leader_in_place() -> None:
    member, _ = elected()
    role = member.machine.role_state
    assert isinstance(role, Leading)
    deadline_ms = role.check_quorum_deadline_ms
    member.now_ms += 2_000
    fetch(member, 9, 0)
    assert role.check_quorum_deadline_ms == deadline_ms


def test_of_five_two_must_fetch() -> None:
    member, _ = elected(voters=(1, 2, 3, 4, 5))
    role = member.machine.role_state
    assert isinstance(role, Leading)
    deadline_ms = role.check_quorum_deadline_ms
    member.now_ms += 100
    fetch(member, 2, 0)
    fetch(member, 2, 0)
    assert role.check_quorum_deadline_ms == deadline_ms
    fetch(member, 3, 0)
    assert role.check_quorum_deadline_ms == deadline_ms + 100


def test_the_epoch_is_announced_until_voters_fetch() -> None:
    member, effects = elected()
    announced = asks(effects, BeginEpochRequest)
    assert sorted(announced) == [2, 3]
    assert announced[2].endpoints == member.machine.listeners
    member.answered(2, announced[2], Response(leader=member.machine.leader))
    member.answered(3, announced[3], None)
    assert sorted(asks(member.let_time_pass(), BeginEpochRequest)) == [3]
    fetch(member, 2, 0)
    due_ms = member.now_ms + TIMEOUTS.begin_epoch_ms
    assert sorted(asks(member.let_time_pass(), BeginEpochRequest)) == [2]
    assert member.now_ms == due_ms


def test_a_higher_epoch_ends_leadership() -> None:
    member, effects = elected()
    ask = asks(effects, BeginEpochRequest)[2]
    member.answered(2, ask, Response(error_code=FENCED_LEADER_EPOCH, leader=Leader(epoch=9)))
    assert (member.role, member.machine.epoch) == (Role.UNATTACHED, 9)


def test_snapshots_are_served_by_the_leader_of_the_epoch_only() -> None:
    member, _ = elected()
    ask = SnapshotRequest(epoch=1, replica=key(2), snapshot=SnapshotKey(5, 1), position=0)
    assert only(member.asked(ask), ServeSnapshot)
    old = SnapshotRequest(epoch=0, replica=key(2), snapshot=SnapshotKey(5, 1), position=0)
    (answer,) = only(member.asked(old), SendResponse)
    assert answer.reply.error_code == FENCED_LEADER_EPOCH


def test_a_dynamic_quorums_first_leader_puts_the_voters_into_the_log() -> None:
    member, effects = elected(is_static=False)
    (append,) = only(effects, AppendControl)
    change, version, voters = append.values
    assert isinstance(change, LeaderChange)
    assert change.version == 1
    assert version == KRaftVersion(kraft_version=1)
    assert isinstance(voters, Voters)
    assert [each.node_id for each in voters.voters] == [1, 2, 3]
    assert member.machine.history.latest_offset == 2


def test_a_leader_that_listens_elsewhere_than_the_voters_record_says_puts_that_right() -> None:
    member, _ = elected(is_static=False)
    machine = member.machine
    assert machine.history.latest_offset == 2
    assert [type(value) for value in leading._first_values(machine, (1,))] == [LeaderChange]
    machine.listeners = (endpoint(9),)
    _, version, voters = leading._first_values(machine, (1,))
    assert version == KRaftVersion(kraft_version=1)
    assert isinstance(voters, Voters)
    assert [each.endpoints for each in voters.voters] == [(endpoint(9),), (endpoint(2),), (endpoint(3),)]
    machine.listeners = ()
    assert [type(value) for value in leading._first_values(machine, (1,))] == [LeaderChange]


def test_progress_of_observers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "OBSERVER_COUNT_MAX", 3)
    member, _ = elected()
    role = member.machine.role_state
    assert isinstance(role, Leading)
    for node_id in range(10, 20):
        fetch(member, node_id, 0)
    assert len(role.progress) == 3
    member.now_ms += leading.OBSERVER_SESSION_MS + 1
    fetch(member, 30, 0)
    assert list(role.progress) == [key(30)]
