"""A cluster under crashes, power cuts, pauses, partitions and slow disks, one node at a time.

Nothing acknowledged is lost, nothing is there twice, nothing changes its place. And the harness is not blind: each
mutant is caught.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pytest

from millbeck import compiled
from millbeck.replication.in_sync import InSync
from millbeck.testing.cluster_run import FAULTS, ClusterPlan, ClusterRun

SEEDS = 5
"""Of each run of the tests; ``--seed`` chooses another one."""
MUTANT_SEEDS = 20


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "cluster_seed" in metafunc.fixturenames:
        chosen = metafunc.config.getoption("--seed")
        metafunc.parametrize("cluster_seed", [int(chosen)] if chosen else list(range(SEEDS)))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_what_was_acknowledged_is_there_once_and_in_order(cluster_seed: int) -> None:
    plan = ClusterPlan.drawn(cluster_seed)
    anomalies = ClusterRun(plan).run()
    assert not anomalies, f"make sim SEED={cluster_seed}\n{plan}\n" + "\n".join(map(str, anomalies[:10]))


def test_a_seed_decides_everything() -> None:
    digests = []
    for _ in range(2):
        run = ClusterRun(ClusterPlan(seed=5, batch_count=10, faults=("crash of a leader",), fault_count=1))
        run.run()
        digests.append(run.world.trace.digest())
    assert digests[0] == digests[1]


def test_the_seeds_cover_every_fault_and_both_layouts() -> None:
    plans = [ClusterPlan.drawn(seed) for seed in range(60)]
    assert {fault for plan in plans for fault in plan.faults} == {*FAULTS, "power loss"}
    assert {plan.is_combined for plan in plans} == {True, False}
    assert {plan.survives_power_loss for plan in plans} == {True, False}


# Mutants: nodes broken on purpose.


def _the_leader_acknowledges_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InSync, "watermark", lambda self, own_offset, leader_end_offset: own_offset)


def _followers_keep_what_their_leader_does_not_have(patch: pytest.MonkeyPatch) -> None:
    from millbeck.server.handlers.fetch import fetching

    patch.setattr(fetching, "divergence", lambda *_, **__: None)


MUTANTS = [_the_leader_acknowledges_alone, _followers_keep_what_their_leader_does_not_have]


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize("mutate", MUTANTS, ids=lambda mutate: mutate.__name__.strip("_"))
def test_every_mutant_is_caught(mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutate(monkeypatch)
    for seed in range(MUTANT_SEEDS):
        plan = ClusterPlan(
            seed=seed,
            faults=("partition of a leader",),
            fault_count=5,
            topic_options={"min.insync.replicas": "2"},
            partition_count=1,
            batch_count=20,
        )
        try:
            if ClusterRun(plan).run():
                return
        except Exception:
            return
    pytest.fail(f"{mutate.__name__} survived {MUTANT_SEEDS} seeds: the harness does not see it")
