from __future__ import annotations

from millbeck.raft.events import ShutdownRequested
from millbeck.raft.messages import FetchRequest, VoteRequest, VoteResponse
from millbeck.raft.roles import Role
from millbeck.raft.voters import Leader, ReplicaKey
from millbeck.server.metadata.quorum_description import describe_quorum
from millbeck.simulation.raft.bench import BenchMember, asks, directory


def _leader() -> BenchMember:
    member = BenchMember(1)
    member.start()
    effects = member.let_time_pass()
    while member.role is not Role.LEADER:
        votes, effects = asks(effects, VoteRequest), []
        for node_id, vote in votes.items():
            reply = VoteResponse(is_granted=True, leader=Leader(epoch=member.machine.epoch))
            effects += member.answered(node_id, vote, reply)
    return member


def test_the_leader_knows_how_far_everybody_is() -> None:
    member = _leader()
    member.flush()
    for node_id in (2, 9):
        replica = ReplicaKey(node_id, directory(node_id))
        member.asked(FetchRequest(epoch=1, replica=replica, offset=1, last_epoch=1))
    now_ms = member.now_ms + 30
    found = describe_quorum(member.machine, now_ms=now_ms, wall_ms=1_000_030)
    assert found is not None
    assert (found.leader_id, found.epoch, found.high_watermark) == (1, 1, 1)
    assert [(each.key.node_id, each.end_offset) for each in found.voters] == [(1, 1), (2, 1), (3, -1)]
    assert [each.last_fetch_ms for each in found.voters] == [1_000_030, 1_000_000, -1]
    assert [each.last_caught_up_ms for each in found.observers] == [1_000_000]
    assert sorted(found.endpoints) == [1, 2, 3]


def test_nobody_else_does() -> None:
    member = _leader()
    member.step(ShutdownRequested())
    assert describe_quorum(member.machine, now_ms=0, wall_ms=0) is None
