"""Following: what is fetched, what is cut, what is committed here, and what happens when the leader is silent."""

from __future__ import annotations

import pytest

from millbeck.raft.effects import (
    AppendFetched,
    Effect,
    InstallSnapshot,
    MoveHighWatermark,
    Send,
    TruncateTo,
    WriteSnapshotPart,
)
from millbeck.raft.events import LogTruncated, SnapshotInstalled, TimePassed
from millbeck.raft.messages import (
    FENCED_LEADER_EPOCH,
    NOT_LEADER,
    AddVoterAsk,
    BeginEpochAsk,
    EpochEnd,
    FetchAsk,
    FetchReply,
    RemoveVoterAsk,
    Reply,
    SnapshotAsk,
    SnapshotKey,
    SnapshotReply,
    UpdateVoterAsk,
    VoteAsk,
)
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import Following, Role
from millbeck.raft.voters import Leader, ReplicaKey, VoterSet
from millbeck.testing.raft.bench import TIMEOUTS, Member, asks, directory, endpoint, only, voter
from millbeck.testing.raft.memory_log import Entry, MemoryLog, MemorySnapshot

LEADER = 3


def follower(epoch: int = 4, **options: object) -> tuple[Member, FetchAsk]:
    options.setdefault("state", QuorumState(leader_epoch=epoch, leader_id=LEADER))
    member = Member(1, **options)  # type: ignore[arg-type]
    return member, asks(member.start(), FetchAsk)[LEADER]


def reply(member: Member, **fields: object) -> FetchReply:
    fields.setdefault("high_watermark", 0)
    return FetchReply(leader=member.machine.leader, **fields)  # type: ignore[arg-type]


def batch(offset: int, *epochs: int) -> bytes:
    log = MemoryLog(MemorySnapshot(SnapshotKey(offset, 0), 0, VoterSet()))
    for index, epoch in enumerate(epochs):
        log.append(Entry(epoch, 1_000 + offset + index))
    return log.read(offset, len(epochs))


def test_a_follower_asks_from_its_logs_end() -> None:
    _, ask = follower(epochs=[1, 4])
    assert ask == FetchAsk(epoch=4, replica=ReplicaKey(1, directory(1)), offset=2, last_epoch=4, high_watermark=-1)


def test_what_is_fetched_is_flushed_before_the_next_fetch() -> None:
    member, ask = follower(epochs=[4])
    effects = member.answered(LEADER, ask, reply(member, records=batch(1, 4, 4)))
    assert only(effects, AppendFetched) == [AppendFetched(records=batch(1, 4, 4), epoch=4)]
    assert only(effects, Send) == []
    assert only(member.step(TimePassed()), Send) == []
    (send,) = only(member.flush(), Send)
    assert isinstance(send.ask, FetchAsk)
    assert send.ask.offset == 3


def test_a_follower_that_starts_with_an_unflushed_log_waits_too() -> None:
    member = Member(1, state=QuorumState(leader_epoch=4, leader_id=LEADER), epochs=[4, 4])
    member.log.flushed_offset = 1
    assert only(member.start(), Send) == []
    assert asks(member.flush(), FetchAsk)[LEADER].offset == 2


def test_what_the_leader_has_committed_counts_as_far_as_this_log_reaches() -> None:
    member, ask = follower(epochs=[4, 4])
    effects = member.answered(LEADER, ask, reply(member, high_watermark=9))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=2)]
    ask = asks(effects, FetchAsk)[LEADER]
    assert ask.high_watermark == 2
    effects = member.answered(LEADER, ask, reply(member, high_watermark=3, records=batch(2, 4, 4)))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=3)]


def test_the_high_watermark_at_a_snapshots_end_is_told_once() -> None:
    member, ask = follower(start=SnapshotKey(10, 3))
    assert (member.machine.high_watermark, ask.offset, ask.last_epoch) == (10, 10, 3)
    effects = member.answered(LEADER, ask, reply(member, high_watermark=10))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=10)]
    effects = member.answered(LEADER, asks(effects, FetchAsk)[LEADER], reply(member, high_watermark=10))
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
    again = asks(effects, FetchAsk)[LEADER]
    assert again.offset == expected


def test_nothing_committed_is_ever_cut() -> None:
    member, ask = follower(epochs=[1, 2, 2])
    ask = asks(member.answered(LEADER, ask, reply(member, high_watermark=3)), FetchAsk)[LEADER]
    with pytest.raises(AssertionError, match="is committed here"):
        member.answered(LEADER, ask, reply(member, diverging=EpochEnd(1, 1)))


def test_a_silent_leader_leads_to_an_election() -> None:
    member, ask = follower()
    member.answered(LEADER, ask, None)
    role = member.machine.role_state
    assert isinstance(role, Following)
    assert role.deadline_ms == member.now_ms + TIMEOUTS.fetch_ms
    member.now_ms = role.deadline_ms
    effects = member.step(TimePassed())
    assert member.role is Role.PROSPECTIVE
    assert sorted(asks(effects, VoteAsk)) == [2, 3]


def test_an_answer_gives_the_leader_more_time_an_error_does_not() -> None:
    member, ask = follower()
    role = member.machine.role_state
    assert isinstance(role, Following)
    deadline_ms = role.deadline_ms
    member.now_ms += 500
    error = FetchReply(error_code=NOT_LEADER, leader=Leader(epoch=4))
    member.answered(LEADER, ask, error)
    assert role.deadline_ms == deadline_ms
    ask = asks(member.let_time_pass(), FetchAsk)[LEADER]
    member.answered(LEADER, ask, reply(member))
    assert role.deadline_ms == member.now_ms + TIMEOUTS.fetch_ms


def test_an_answer_of_an_older_epoch_is_not_looked_at() -> None:
    member, ask = follower()
    member.asked(BeginEpochAsk(epoch=6, leader_id=2))
    late = FetchReply(leader=Leader(node_id=LEADER, epoch=4), records=batch(0, 4))
    assert member.answered(LEADER, ask, late) == []
    assert member.log.end_offset == 0


def test_observers_ask_around_until_somebody_knows_the_leader() -> None:
    member = Member(9, can_vote=False, bootstrap=(endpoint(7),))
    (send,) = only(member.start(), Send)
    assert (send.node_id, send.endpoint) == (-2, endpoint(7))
    assert isinstance(send.ask, FetchAsk)
    member.answered(-2, send.ask, None)
    (send,) = only(member.let_time_pass(), Send)
    assert send.node_id == 1
    leader = Leader(node_id=2, epoch=5, endpoint=endpoint(2))
    effects = member.answered(1, send.ask, FetchReply(error_code=FENCED_LEADER_EPOCH, leader=leader))
    assert member.role is Role.FOLLOWER
    assert asks(effects, FetchAsk)[2].epoch == 5


def test_an_observer_whose_leader_does_not_answer_asks_others_every_other_time_and_hears_of_the_next_one() -> None:
    member = Member(9, can_vote=False, state=QuorumState(leader_epoch=4, leader_id=LEADER))
    ask = asks(member.start(), FetchAsk)[LEADER]
    began_ms, asked = member.now_ms, [LEADER]
    member.answered(LEADER, ask, None)
    while len(asked) < 5:
        (send,) = only(member.let_time_pass(), Send)
        asked.append(send.node_id)
        refusal = Reply(error_code=NOT_LEADER, leader=Leader(node_id=LEADER, epoch=4, endpoint=endpoint(LEADER)))
        if len(asked) < 5:
            member.answered(send.node_id, send.ask, None if send.node_id == LEADER else refusal)
    assert asked[::2] == [LEADER] * 3
    assert sorted(asked[1::2]) == [1, 2]
    assert member.now_ms - began_ms < TIMEOUTS.fetch_ms
    member.answered(LEADER, send.ask, None)
    (send,) = only(member.let_time_pass(), Send)
    news = Reply(error_code=FENCED_LEADER_EPOCH, leader=Leader(node_id=2, epoch=5, endpoint=endpoint(2)))
    effects = member.answered(send.node_id, send.ask, news)
    assert (member.role, member.machine.leader.node_id) == (Role.FOLLOWER, 2)
    assert asks(effects, FetchAsk)[2].epoch == 5


def test_a_voter_asks_only_the_leader_it_knows() -> None:
    member, ask = follower()
    for _ in range(4):
        member.answered(LEADER, ask, None)
        sent = asks(member.let_time_pass(), FetchAsk)
        assert list(sent) == [LEADER]
        ask = sent[LEADER]


def test_an_observer_whose_leader_is_silent_asks_around_again() -> None:
    member = Member(9, can_vote=False, state=QuorumState(leader_epoch=4, leader_id=LEADER))
    member.start()
    member.now_ms += TIMEOUTS.fetch_ms
    effects = member.step(TimePassed())
    assert member.role is Role.UNATTACHED
    assert len(only(effects, Send)) == 1


def test_a_snapshot_is_fetched_part_by_part_and_installed() -> None:
    member, ask = follower(epochs=[1, 1])
    key = SnapshotKey(50, 3)
    effects = member.answered(LEADER, ask, reply(member, snapshot=key))
    for position, size in ((0, 10), (10, 5)):
        part = asks(effects, SnapshotAsk)[LEADER]
        assert (part.position, part.snapshot, part.epoch) == (position, key, 4)
        fetched = SnapshotReply(
            leader=member.machine.leader, snapshot=key, size_bytes=15, position=position, data=bytes(size)
        )
        effects = member.answered(LEADER, part, fetched)
        assert only(effects, WriteSnapshotPart)[0].position == position
    assert only(effects, InstallSnapshot) == [InstallSnapshot(snapshot=key)]
    assert only(effects, Send) == []
    member.log.start_over(MemorySnapshot(key, 1, VoterSet.of((voter(1), voter(5)))))
    effects = member.step(SnapshotInstalled(end_offset=50, kraft_version=1, voters=VoterSet.of((voter(1), voter(5)))))
    assert only(effects, MoveHighWatermark) == [MoveHighWatermark(high_watermark=50)]
    again = asks(effects, FetchAsk)[LEADER]
    assert (again.offset, again.last_epoch) == (50, 3)
    assert member.machine.history.latest.ids == (1, 5)


def test_a_snapshot_that_is_damaged_is_fetched_again_after_a_while() -> None:
    """It may be damaged where it comes from: then it is large, and never gets better."""
    member, ask = follower(epochs=[1, 1])
    key = SnapshotKey(50, 3)
    part = asks(member.answered(LEADER, ask, reply(member, snapshot=key)), SnapshotAsk)[LEADER]
    whole = SnapshotReply(leader=member.machine.leader, snapshot=key, size_bytes=9, position=0, data=bytes(9))
    assert only(member.answered(LEADER, part, whole), InstallSnapshot)
    began_ms = member.now_ms
    assert only(member.step(LogTruncated(end_offset=member.log.end_offset)), Send) == []
    again = asks(member.let_time_pass(), FetchAsk)[LEADER]
    assert (again.offset, member.now_ms - began_ms) == (2, TIMEOUTS.fetch_ms // 2)
    assert member.role is Role.FOLLOWER


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    member, ask = follower()
    key = SnapshotKey(50, 3)
    part = asks(member.answered(LEADER, ask, reply(member, snapshot=key)), SnapshotAsk)[LEADER]
    member.answered(LEADER, part, SnapshotReply(error_code=98, leader=member.machine.leader, snapshot=key))
    assert isinstance(asks(member.let_time_pass(), FetchAsk)[LEADER], FetchAsk)
    ask = asks(member.let_time_pass(), FetchAsk).get(LEADER, ask)


def _updates(member: Member) -> list[Effect]:
    """Let the follower look whether the voters' record says the truth about it."""
    role = member.machine.role_state
    assert isinstance(role, Following)
    role.has_fetched = True
    role.deadline_ms += 60_000
    member.now_ms = role.update.due_ms
    return member.step(TimePassed())


def test_a_voter_tells_the_leader_when_the_record_about_it_is_wrong() -> None:
    member, _ = follower(is_static=False)
    assert asks(_updates(member), UpdateVoterAsk) == {}
    member.machine.listeners = (endpoint(8),)
    ask = asks(_updates(member), UpdateVoterAsk)[LEADER]
    assert (ask.epoch, ask.voter.endpoints) == (4, (endpoint(8),))
    assert asks(_updates(member), UpdateVoterAsk) == {}, "one at a time"
    member.answered(LEADER, ask, Reply(leader=member.machine.leader))
    assert LEADER in asks(_updates(member), UpdateVoterAsk)


def test_a_new_controller_joins_by_itself_if_it_may() -> None:
    quiet, _ = follower(voters=(2, 3), is_static=False)
    assert only(_updates(quiet), Send) == []
    joining, _ = follower(voters=(2, 3), is_static=False, auto_join=True)
    added = asks(_updates(joining), AddVoterAsk)[LEADER]
    assert added.voter.node_id == 1
    assert not added.acknowledge_when_committed


def test_a_controller_with_a_new_disk_has_its_old_vote_removed_first() -> None:
    member, _ = follower(is_static=False, auto_join=True, life=2)
    removal = asks(_updates(member), RemoveVoterAsk)[LEADER]
    assert removal.voter == ReplicaKey(1, directory(1))


def test_what_can_not_be_appended_is_fetched_again_after_a_rest() -> None:
    member, ask = follower()
    effects = member.answered(LEADER, ask, reply(member, records=batch(0)) if batch(0) else reply(member))
    again = asks(effects, FetchAsk)[LEADER]
    assert again.offset == 0
