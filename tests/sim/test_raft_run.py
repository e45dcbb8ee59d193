"""The quorum's machines under loss, delay, partitions, crashes, power cuts, snapshots and changed voters.

Safety throughout, progress once all is healed. And the observer is not blind: each mutant is caught.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from millbeck.kernel.ids import ZERO_UUID
from millbeck.raft import elections, following, leading, log_view, voter_changes
from millbeck.raft.effects import AppendControl
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import NOBODY
from millbeck.raft.quorum_state import QuorumState
from millbeck.raft.roles import Following, Leading, Unattached
from millbeck.raft.voters import ReplicaKey
from millbeck.simulation.raft.raft_world import RaftWorld
from millbeck.simulation.raft.replica import Replica

DURATION_MS = 6_000
MUTANT_SEEDS = 200
REGRESSIONS = [40, 103]
"""A prospective that returned to the leader it missed; a removed leader that alone had the longest log."""


def test_the_quorum_is_safe_and_goes_on(seed: int) -> None:
    world = RaftWorld(seed)
    world.run(DURATION_MS)
    world.heal_and_expect_progress()
    assert world.checks.committed_end > 20


@pytest.mark.parametrize("kept", REGRESSIONS)
def test_what_failed_once_stays_fixed(kept: int) -> None:
    world = RaftWorld(kept)
    world.run(10_000)
    world.heal_and_expect_progress()
    assert world.election_count > 0


def test_runs_are_not_empty() -> None:
    worlds = [RaftWorld(seed) for seed in range(30)]
    for world in worlds:
        world.run(DURATION_MS)
    totals = {
        name: sum(getattr(world, name) for world in worlds)
        for name in ("election_count", "truncation_count", "snapshot_count", "change_count")
    }
    assert totals["election_count"] > 60, totals
    assert min(totals.values()) > 0, totals
    assert sum(world.checks.committed_end for world in worlds) > 3_000


def _epochs_after_a_partition() -> tuple[int, list[int]]:
    """The leader's epoch before a follower was cut off, and everybody's after it has come back."""
    world = RaftWorld(5, voter_count=3, observer_count=0, static=True)
    world.heal()
    world.run(1)
    world.faults = []
    assert world.run_until(20_000, lambda: world.checks.committed_end > 3)
    leader = world.leader
    assert leader is not None
    assert leader.machine is not None
    epoch = leader.machine.epoch
    victim = next(replica for replica in world.replicas if replica is not leader)
    world._isolate(victim.key.node_id, is_one_way=False)
    world.run_until(world.now_ms + 10_000)
    world._cut.clear()
    world.run_until(world.now_ms + 5_000)
    return epoch, [replica.machine.epoch for replica in world.replicas if replica.machine]


def test_a_member_that_was_cut_off_does_not_disturb_the_others() -> None:
    epoch, epochs = _epochs_after_a_partition()
    assert epochs == [epoch] * 3


def test_without_the_pre_vote_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elections, "start_pre_vote", elections.stand)
    epoch, epochs = _epochs_after_a_partition()
    assert max(epochs) > epoch


def _forgets_votes(self: Replica, state: QuorumState) -> None:
    self.state = replace(state, voted_id=-1, voted_directory_id=ZERO_UUID)


def _votes_again(machine: QuorumMachine, ask: Any) -> bool:
    return ask.log_end >= log_view.end_of(machine.log) and isinstance(machine.role_state, Unattached)


def _leads_again(self: QuorumMachine) -> None:
    if self.state.leader_id == self.node_id:
        self.role_state = Leading(self.log.end_offset, (), self.now_ms + self.timeouts.check_quorum_ms)
        leading._follow_voters(self, self.role_state)
        self.emit(AppendControl(values=leading._first_values(self, ()), epoch=self.epoch))
        return
    _started(self)


_started = QuorumMachine._on_started


def _counts_old_epochs(machine: QuorumMachine, role: Leading) -> None:
    voters = machine.history.latest
    ends = sorted((leading._end_of(machine, role, key) for key in voters.keys), reverse=True)
    machine.move_high_watermark(ends[voters.majority - 1])


def _counts_unflushed(machine: QuorumMachine, role: Leading, voter: ReplicaKey) -> int:
    if voter.node_id == machine.node_id:
        return machine.log.end_offset
    progress = leading.progress_of(role, voter)
    return -1 if progress is None else progress.end_offset


def _acknowledges_unflushed(machine: QuorumMachine, role: Following) -> None:
    following._learn_high_watermark(machine, role.known_high_watermark, machine.log.end_offset)
    role.is_flushing = False
    following.send_due_requests(machine)


def _ignores_completeness(machine: QuorumMachine, ask: Any) -> bool:
    role = machine.role_state
    if ask.is_pre_vote:
        return not isinstance(role, Leading) and not (isinstance(role, Following) and role.has_fetched)
    if machine.voted != NOBODY:
        return bool(machine.voted.node_id == ask.candidate.node_id)
    return machine.state.leader_id < 0


def _believes_the_leaders_high_watermark(machine: QuorumMachine, high_watermark: int, end_offset: int) -> None:
    machine.move_high_watermark(high_watermark)


Mutant = tuple[Any, str, Callable[..., Any]]
MUTANTS: dict[str, Mutant] = {
    "vote not durable": (Replica, "write_state", _forgets_votes),
    "two votes in one epoch": (elections, "_would_grant", _votes_again),
    "leads again in the same epoch after restart": (QuorumMachine, "_on_started", _leads_again),
    "commit by count of an old epoch": (leading, "advance_high_watermark", _counts_old_epochs),
    "no diverging-epoch check": (leading, "divergence", lambda log, offset, epoch: None),
    "commits before its own flush": (leading, "_end_of", _counts_unflushed),
    "acknowledges before the flush": (following, "on_appended", _acknowledges_unflushed),
    "votes for an incomplete log": (elections, "_would_grant", _ignores_completeness),
    "takes the leader's high watermark as its own": (
        following,
        "_learn_high_watermark",
        _believes_the_leaders_high_watermark,
    ),
    "changes voters before the last change is committed": (
        voter_changes,
        "_refuse_change",
        lambda machine, *, needs_reconfigurable=True: (
            None if isinstance(machine.role_state, Leading) else machine.refusal(6)
        ),
    ),
}


DEATHS = ("crash", "power", "power all", "partition", "heal", "heal")
HARM = dict.fromkeys(MUTANTS, DEATHS) | {
    "vote not durable": ("crash", "power", "partition", "heal"),
    "changes voters before the last change is committed": (*DEATHS, "change", "change", "change", "change"),
}
"""What kills a mutant need not be drawn first."""
FAULT_MS_MAX = dict.fromkeys(MUTANTS, 120) | {"vote not durable": 60}


@pytest.mark.parametrize("name", MUTANTS)
def test_each_mutant_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, attribute, mutant = MUTANTS[name]
    monkeypatch.setattr(owner, attribute, mutant)
    for seed in range(MUTANT_SEEDS):
        world = RaftWorld(seed, voter_count=(3, 5)[seed % 2], faults=HARM[name], fault_ms_max=FAULT_MS_MAX[name])
        try:
            world.run(DURATION_MS)
        except AssertionError:
            return
    pytest.fail(f"{name}: alive after {MUTANT_SEEDS} seeds")
