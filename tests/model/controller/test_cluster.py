"""Whatever happens to a cluster, its rules hold: see `cluster_model` for what happens and what the rules are."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.metadata.delta import advance
from millbeck.metadata.image import EMPTY
from tests.model.controller.cluster_model import OPERATIONS, ClusterModel, run_operations, run_seed

STEPS = st.lists(
    st.tuples(st.sampled_from(sorted(set(OPERATIONS))), st.integers(0, 63), st.integers(0, 63)), max_size=60
)


@settings(max_examples=120, deadline=None)
@given(STEPS, st.booleans(), st.booleans())
def test_the_rules_hold_whatever_happens(steps: list[tuple[str, int, int]], tracks: bool, allows_unclean: bool) -> None:
    model = ClusterModel(tracks_eligible_leaders=tracks, allows_unclean=allows_unclean)
    run_operations(model, steps)
    image = model.image
    replayed, _ = advance(
        EMPTY, image.records(), offset=image.offset, epoch=image.epoch, timestamp_ms=image.timestamp_ms
    )
    assert replayed == image


@pytest.mark.parametrize("options", [{}, {"tracks_eligible_leaders": False}, {"allows_unclean": True}])
def test_long_runs_are_not_empty(options: dict[str, bool]) -> None:
    totals: dict[str, int] = {}
    for seed in range(6):
        for name, count in run_seed(seed, step_count=250, **options).counts.items():
            totals[name] = totals.get(name, 0) + count
    least = {"elections": 60, "commits": 60, "ISR changes": 30, "power losses": 15, "clean ends": 5, "moves": 15}
    assert {name: totals.get(name, 0) for name in least if totals.get(name, 0) < least[name]} == {}
