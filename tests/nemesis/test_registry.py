"""The nemesis of the registry, for a few kills: `make prove WHAT=registry-nemesis` takes five minutes."""

from __future__ import annotations

import pytest

from nemesis.registry import Options, Run

pytest.importorskip("uvicorn")


def test_schemas_survive_kills_of_leader_and_broker() -> None:
    outcome = Run(Options(seconds=5.0, clients=4, kill_every_s=1.5)).run()
    assert not outcome.problems
    assert outcome.kills >= 2
    assert len(outcome.held) > 10
