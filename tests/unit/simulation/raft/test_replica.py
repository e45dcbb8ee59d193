from __future__ import annotations

from millbeck.raft.roles import Role
from millbeck.simulation.raft.raft_world import RaftWorld
from millbeck.simulation.raft.replica import Replica


def _alone(seed: int = 1) -> tuple[RaftWorld, Replica]:
    world = RaftWorld(seed, voter_count=1, observer_count=0, static=True)
    world.heal()
    (replica,) = world.replicas
    world.run_until(1_000)
    return world, replica


def test_a_replica_alone_leads_commits_and_takes_snapshots() -> None:
    world, replica = _alone()
    assert replica.machine is not None
    assert replica.machine.role is Role.LEADER
    assert replica.propose()
    world.run_until(2_000)
    assert replica.high_watermark == replica.log.end_offset == 2
    replica.take_snapshot()
    assert (replica.log.start_offset, len(replica.log.entries)) == (2, 0)


def test_a_crash_ends_the_process_and_leaves_the_disk() -> None:
    world, replica = _alone()
    replica.propose()
    world.run_until(2_000)
    replica.crash(loses_power=True)
    assert not replica.is_up
    assert not replica.propose()
    replica.start()
    world.run_until(3_000)
    assert replica.machine is not None
    assert replica.machine.epoch == 2
    assert replica.high_watermark == 3
