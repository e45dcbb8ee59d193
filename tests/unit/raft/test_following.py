"""Following: what is fetched, what is cut, what is committed here, and what happens when the leader is silent."""

from __future__ import annotations

import pytest

from millbeck.raft.effects import (
    AppendFetched,
    Effect,
    InstallSnapshot,
    MoveHighWatermark,
    SendRequest,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.events import LogTruncated, SnapshotInstalled, TimerExpired
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
    SnapshotKey,
    SnapshotRequest,
    SnapshotResponse,
    UpdateVoterRequest,
    VoteRequest,
)
from millbeck.raft.options import QuorumOptions
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import Following, Role
from millbeck.raft.voters import Leader, ReplicaKey, VoterSet
from millbeck.simulation.raft.bench import TIMEOUTS, BenchMember, asks, directory, endpoint, only, voter
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog, MemorySnapshot

LEADER = 3


def follower(epoch: int = 4, **options: object) -> tuple[BenchMember, FetchRequest]:
    options.setdefault("state", QuorumState(leader_epoch=epoch, leader_id=LEADER))
    member = BenchMember(1, **options)  # type: ignore[arg-type]
    return member, asks(member.start(), FetchRequest)[LEADER]


def reply(member: BenchMember, **fields: object) -> FetchResponse:
    fields.setdefault("high_watermark", 0)
    return FetchResponse(leader=member.machine.leader, **fields)  # type: ignore[arg-type]


def batch(offset: int, *epochs: int) -> bytes:
    log = MemoryLog(MemorySnapshot(SnapshotKey(offset, 0), 0, VoterSet()))
    for index, epoch in enumerate(epochs):
        log.append(LogEntry(epoch, 1_000 + offset + index))
    return log.read(offset, len(epochs))


def test_a_follower_asks_from_its_logs_end() -> None:
    _, ask = follower(epochs=[1, 4])
    assert ask == FetchRequest(epoch=4, replica=ReplicaKey(1, directory(1)), offset=2, last_epoch=4, high_watermark=-1)


def test_what_is_fetched_is_flushed_before_the_next_fetch() -> None:
    member, ask = follower(epochs=[4])
    effects = member.answered(LEADER, ask, reply(member, records=batch(1, 4, 4)))
    assert only(effects, AppendFetched) == [AppendFetched(records=batch(1, 4, 4), epoch=4)]
    assert only(effects, SendRequest) == []
    assert only(member.step(TimerExpired()), SendRequest) == []
    (send,) = only(member.flush(), SendRequest)
    assert isinstance(send.ask, FetchRequest)
    assert send.ask.offset == 3


def test_a_follower_that_starts_with_an_unflushed_log_waits_too() -> None:
    member = BenchMember(1, state=QuorumState(leader_epoch=4, leader_id=LEADER), epochs=[4, 4])
    member.log.flushed_offset = 1
    assert only(member.start(), SendRequest) == []
    assert asks(member.flush(), FetchRequest)[LEADER].offset == 2


def test_what_the_leader_has_committed_counts_as_far_as_this_log_reaches() -> None:
    member, ask = follower(epochs=[4, 4])
    effects = member.answered(LEADER, ask, reply(member, high_watermark=9))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=2)]
    ask = asks(effects, FetchRequest)[LEADER]
    assert ask.high_watermark == 2
    effects = member.answered(LEADER, ask, reply(member, high_watermark=3, records=batch(2, 4, 4)))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=3)]


def test_the_high_watermark_at_a_snapshots_end_is_told_once() -> None:
    member, ask = follower(start=SnapshotKey(10, 3))
    assert (member.machine.high_watermark, ask.offset, ask.last_epoch) == (10, 10, 3)
    effects = member.answered(LEADER, ask, reply(member, high_watermark=10))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=10)]
    effects = member.answered(LEADER, asks(effects, FetchRequest)[LEADER], reply(member, high_watermark=10))
    assert only(effects, MoveHighWatermark) == []


CUTS = {
    "the epoch ended earlier there": ([1, 2, 2, 2], EpochEnd(2, 3), 3),
    "the epoch ended earlier here": ([1, 2, 3], EpochEnd(2, 9), 2),
    "the epoch is not here": ([1, 1, 3], EpochEnd(2, 9), 2),
    "nothing is alike": ([3, 3], EpochEnd(1, 2), 0),
}


@pytest.mark.parametrize(("epochs", "diverging", "expected"), CUTS.values(), ids=CUTS.keys())
def test_a_log_is_cut_where_it_leaves_the_leaders(epochs: list[int], diverging: EpochEnd, expected: int) -> None:
    member, ask = follower(epochs=epochs)
    effects = member.answered(LEADER, ask, reply(member, diverging=diverging))
    assert only(effects, TruncateTo) == [TruncateTo(offset=expected)]
    again = asks(effects, FetchRequest)[LEADER]
    assert again.offset == expected


def test_nothing_committed_is_ever_cut() -> None:
    member, ask = follower(epochs=[1, 2, 2])
    ask = asks(member.answered(LEADER, ask, reply(member, high_watermark=3)), FetchRequest)[LEADER]
    with pytest.raises(AssertionError, match=r"below this replica.s high watermark"):
        member.answered(LEADER, ask, reply(member, diverging=EpochEnd(1, 1)))


def test_a_silent_leader_leads_to_an_election() -> None:
    member, ask = follower()
    member.answered(LEADER, ask, None)
    role = member.machine.role_state
    assert isinstance(role, Following)
    assert role.deadline_ms == member.now_ms + TIMEOUTS.fetch_ms
    member.now_ms = role.deadline_ms
    effects = member.step(TimerExpired())
    assert member.role is Role.PROSPECTIVE
    assert sorted(asks(effects, VoteRequest)) == [2, 3]


def test_an_answer_gives_the_leader_more_time_an_error_does_not() -> None:
    member, ask = follower()
    role = member.machine.role_state
    assert isinstance(role, Following)
    deadline_ms = role.deadline_ms
    member.now_ms += 500
    error = FetchResponse(error_code=NOT_LEADER, leader=Leader(epoch=4))
    member.answered(LEADER, ask, error)
    assert role.deadline_ms == deadline_ms
    ask = asks(member.let_time_pass(), FetchRequest)[LEADER]
    member.answered(LEADER, ask, reply(member))
    assert role.deadline_ms == member.now_ms + TIMEOUTS.fetch_ms


def test_an_answer_of_an_older_epoch_is_not_looked_at() -> None:
    member, ask = follower()
    member.asked(BeginEpochRequest(epoch=6, leader_id=2))
    late = FetchResponse(leader=Leader(node_id=LEADER, epoch=4), records=batch(0, 4))
    assert member.answered(LEADER, ask, late) == []
    assert member.log.end_offset == 0


def test_observers_ask_around_until_somebody_knows_the_leader() -> None:
    member = BenchMember(9, options=QuorumOptions(can_vote=False, bootstrap=(endpoint(7),)))
    (send,) = only(member.start(), SendRequest)
    assert (send.node_id, send.endpoint) == (-2, endpoint(7))
    assert isinstance(send.ask, FetchRequest)
    member.answered(-2, send.ask, None)
    (send,) = only(member.let_time_pass(), SendRequest)
    assert send.node_id == 1
    leader = Leader(node_id=2, epoch=5, endpoint=endpoint(2))
    effects = member.answered(1, send.ask, FetchResponse(error_code=FENCED_LEADER_EPOCH, leader=leader))
    assert member.role is Role.FOLLOWER
    assert asks(effects, FetchRequest)[2].epoch == 5


def test_an_observer_whose_leader_does_not_answer_asks_others_every_other_time_and_hears_of_the_next_one() -> None:
    member = BenchMember(9, options=QuorumOptions(can_vote=False), state=QuorumState(leader_epoch=4, leader_id=LEADER))
    ask = asks(member.start(), FetchRequest)[LEADER]
    began_ms, asked = member.now_ms, [LEADER]
    member.answered(LEADER, ask, None)
    while len(asked) < 5:
        (send,) = only(member.let_time_pass(), SendRequest)
        asked.append(send.node_id)
        refusal = Response(error_code=NOT_LEADER, leader=Leader(node_id=LEADER, epoch=4, endpoint=endpoint(LEADER)))
        if len(asked) < 5:
            member.answered(send.node_id, send.ask, None if send.node_id == LEADER else refusal)
    assert asked[::2] == [LEADER] * 3
    assert sorted(asked[1::2]) == [1, 2]
    assert member.now_ms - began_ms < TIMEOUTS.fetch_ms
    member.answered(LEADER, send.ask, None)
    (send,) = only(member.let_time_pass(), SendRequest)
    news = Response(error_code=FENCED_LEADER_EPOCH, leader=Leader(node_id=2, epoch=5, endpoint=endpoint(2)))
    effects = member.answered(send.node_id, send.ask, news)
    assert (member.role, member.machine.leader.node_id) == (Role.FOLLOWER, 2)
    assert asks(effects, FetchRequest)[2].epoch == 5


def test_a_voter_asks_only_the_leader_it_knows() -> None:
    member, ask = follower()
    for _ in range(4):
        member.answered(LEADER, ask, None)
        sent = asks(member.let_time_pass(), FetchRequest)
        assert list(sent) == [LEADER]
        ask = sent[LEADER]


def test_an_observer_whose_leader_is_silent_asks_around_again() -> None:
    member = BenchMember(9, options=QuorumOptions(can_vote=False), state=QuorumState(leader_epoch=4, leader_id=LEADER))
    member.start()
    member.now_ms += TIMEOUTS.fetch_ms
    effects = member.step(TimerExpired())
    assert member.role is Role.UNATTACHED
    assert len(only(effects, SendRequest)) == 1


def test_a_snapshot_is_fetched_part_by_part_and_installed() -> None:
    member, ask = follower(epochs=[1, 1])
    key = SnapshotKey(50, 3)
    effects = member.answered(LEADER, ask, reply(member, snapshot=key))
    for position, size in ((0, 10), (10, 5)):
        part = asks(effects, SnapshotRequest)[LEADER]
        assert (part.position, part.snapshot, part.epoch) == (position, key, 4)
        fetched = SnapshotResponse(
            leader=member.machine.leader, snapshot=key, size_bytes=15, position=position, data=bytes(size)
        )
        effects = member.answered(LEADER, part, fetched)
        assert only(effects, WriteSnapshotPart)[0].position == position
    assert only(effects, InstallSnapshot) == [InstallSnapshot(snapshot=key)]
    assert only(effects, SendRequest) == []
    member.log.start_over(MemorySnapshot(key, 1, VoterSet.of((voter(1), voter(5)))))
    effects = member.step(SnapshotInstalled(end_offset=50, kraft_version=1, voters=VoterSet.of((voter(1), voter(5)))))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=50)]
    again = asks(effects, FetchRequest)[LEADER]
    assert (again.offset, again.last_epoch) == (50, 3)
    assert member.machine.history.latest.ids == (1, 5)


def test_a_snapshot_that_is_damaged_is_fetched_again_after_a_while() -> None:
    """It may be damaged where it comes from: then it is large, and never gets better."""
    member, ask = follower(epochs=[1, 1])
    key = SnapshotKey(50, 3)
    part = asks(member.answered(LEADER, ask, reply(member, snapshot=key)), SnapshotRequest)[LEADER]
    whole = SnapshotResponse(leader=member.machine.leader, snapshot=key, size_bytes=9, position=0, data=bytes(9))
    assert only(member.answered(LEADER, part, whole), InstallSnapshot)
    began_ms = member.now_ms
    assert only(member.step(LogTruncated(end_offset=member.log.end_offset)), SendRequest) == []
    again = asks(member.let_time_pass(), FetchRequest)[LEADER]
    assert (again.offset, member.now_ms - began_ms) == (2, TIMEOUTS.fetch_ms // 2)
    assert member.role is Role.FOLLOWER


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    member, ask = follower()
    key = SnapshotKey(50, 3)
    part = asks(member.answered(LEADER, ask, reply(member, snapshot=key)), SnapshotRequest)[LEADER]
    member.answered(LEADER, part, SnapshotResponse(error_code=98, leader=member.machine.leader, snapshot=key))
    assert isinstance(asks(member.let_time_pass(), FetchRequest)[LEADER], FetchRequest)
    ask = asks(member.let_time_pass(), FetchRequest).get(LEADER, ask)


def _updates(member: BenchMember) -> list[Effect]:
    """Let the follower look whether the voters' record says the truth about it."""
    role = member.machine.role_state
    assert isinstance(role, Following)
    role.has_fetched = True
    role.deadline_ms += 60_000
    member.now_ms = role.update.due_ms
    return member.step(TimerExpired())


def test_a_voter_tells_the_leader_when_the_record_about_it_is_wrong() -> None:
    member, _ = follower(is_static=False)
    assert asks(_updates(member), UpdateVoterRequest) == {}
    member.machine.listeners = (endpoint(8),)
    ask = asks(_updates(member), UpdateVoterRequest)[LEADER]
    assert (ask.epoch, ask.voter.endpoints) == (4, (endpoint(8),))
    assert asks(_updates(member), UpdateVoterRequest) == {}, "one at a time"
    member.answered(LEADER, ask, Response(leader=member.machine.leader))
    assert LEADER in asks(_updates(member), UpdateVoterRequest)


def test_a_new_controller_joins_by_itself_if_it_may() -> None:
    quiet, _ = follower(voters=(2, 3), is_static=False)
    assert only(_updates(quiet), SendRequest) == []
    joining, _ = follower(voters=(2, 3), is_static=False, options=QuorumOptions(auto_join=True))
    added = asks(_updates(joining), AddVoterRequest)[LEADER]
    assert added.voter.node_id == 1
    assert not added.acknowledge_when_committed


def test_a_controller_with_a_new_disk_has_its_old_vote_removed_first() -> None:
    member, _ = follower(is_static=False, options=QuorumOptions(auto_join=True), life=2)
    removal = asks(_updates(member), RemoveVoterRequest)[LEADER]
    assert removal.voter == ReplicaKey(1, directory(1))


def test_what_can_not_be_appended_is_fetched_again_after_a_rest() -> None:
    member, ask = follower()
    effects = member.answered(LEADER, ask, reply(member, records=batch(0)) if batch(0) else reply(member))
    again = asks(effects, FetchRequest)[LEADER]
    assert again.offset == 0
