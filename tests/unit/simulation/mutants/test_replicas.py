"""Mistakes of replicas, looked at where they are made."""

from __future__ import annotations

import pytest

from millbeck import compiled
from millbeck.replication.isr import IsrState, ReplicaContext
from millbeck.simulation.mutants import replicas
from millbeck.simulation.mutants.patching import patched


def leader() -> IsrState:
    in_sync = IsrState(ReplicaContext(1, lambda: 0, lambda broker_id, epoch: True, 1000))
    in_sync.begin((1, 2, 3), (1, 2), is_new_leader=True)
    in_sync.followers[2].end_offset = 5
    in_sync.followers[3].end_offset = 2
    return in_sync


def test_a_leader_alone_waits_for_nobody() -> None:
    assert leader().watermark(9, 9) == 5
    with patched() as patch:
        replicas.leader_acknowledges_alone(patch)
        assert leader().watermark(9, 9) == 9


def test_one_that_is_behind_comes_into_the_isr() -> None:
    in_sync = leader()
    assert in_sync.expansion(in_sync.followers[3], 5, 0) is None
    with patched() as patch:
        replicas.isr_member_that_is_behind(patch)
        assert in_sync.expansion(in_sync.followers[3], 5, 0) == (1, 2, 3)


def test_a_proposal_is_not_waited_for() -> None:
    in_sync = leader()
    in_sync.propose((1, 2, 3), 0, 0)
    assert in_sync.maximal == (1, 2, 3)
    with patched() as patch:
        replicas.high_watermark_over_a_stale_isr(patch)
        in_sync = leader()
        in_sync.propose((1, 2, 3), 0, 0)
        assert in_sync.maximal == (1, 2)


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
def test_too_few_in_sync_are_enough() -> None:
    assert leader().is_under(3)
    with patched() as patch:
        replicas.acknowledges_before_min_isr(patch)
        assert not leader().is_under(3)
