"""The mutants by name: all that are asked for, each with runs of its own."""

from __future__ import annotations

import pytest

from millbeck import compiled
from millbeck.simulation.mutants.catalogue import MUTANTS, Mutant
from millbeck.simulation.mutants.patching import patched

NAMES = {
    "leader acknowledges alone",
    "acknowledges before min ISR",
    "vote not durable",
    "two votes in one epoch",
    "leads again in the same epoch after restart",
    "commit by count of an old epoch",
    "no diverging-epoch check",
    "truncation to the high watermark",
    "ISR member counted that is behind",
    "high watermark over a stale ISR",
    "AlterPartition without the epoch compare",
    "fenced broker stays in ISR",
    "heartbeat counts only when it is decided on",
    "unclean shutdown ignored by ELR",
    "reply before metadata commit",
    "snapshot that misses one record type",
    "zero-filled hole accepted by recovery",
    "producer state not rebuilt on a new leader",
}


def test_none_is_missing_and_names_are_unique() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert set(names) >= NAMES
    assert len(set(names)) == len(names)


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_each_can_be_made_and_unmade(mutant: Mutant) -> None:
    with patched() as patch:
        mutant.apply(patch)
        replaced = [(owner, name, before, getattr(owner, name)) for owner, name, before in patch._before]
    assert replaced
    assert all(mutated is not before for _, _, before, mutated in replaced)
    assert all(owner.__dict__[name] is before for owner, name, before, _ in replaced)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_its_runs_are_its_seeds(mutant: Mutant) -> None:
    plan = mutant.plan(3)
    assert plan == mutant.plan(3)
    assert plan.schedule
    if mutant.flushes is not None:
        assert plan.flushes == mutant.flushes == ("flush.messages" in plan.topic_options)
    if mutant.kinds and not mutant.script:
        assert {fault.kind for fault in plan.schedule} <= set(mutant.kinds)
