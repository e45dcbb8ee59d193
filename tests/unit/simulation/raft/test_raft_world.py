from __future__ import annotations

import pytest

from millbeck.simulation.raft.checks import RaftViolation
from millbeck.simulation.raft.raft_world import RaftWorld


def test_a_seed_is_a_run() -> None:
    results = []
    for _ in range(2):
        world = RaftWorld(12)
        world.run(3_000)
        results.append((world.step_count, world.election_count, world.checks.committed_end, len(world.checks.votes)))
    assert results[0] == results[1]
    assert results[0][0] > 100


def test_a_quorum_without_a_majority_makes_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    world = RaftWorld(3, voter_count=3, observer_count=0, static=True)
    world.heal()
    assert world.run_until(10_000, lambda: world.leader is not None)
    for replica in world.replicas[1:]:
        replica.crash(loses_power=False)
    monkeypatch.setattr(world, "heal", lambda: None)
    with pytest.raises(RaftViolation, match="no progress"):
        world.heal_and_expect_progress()
