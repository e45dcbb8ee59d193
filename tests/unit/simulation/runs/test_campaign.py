"""Campaigns: what counts as empty, and how one seed is replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from millbeck.simulation.observer.cluster_observer import Counts
from millbeck.simulation.runs import campaign
from millbeck.simulation.runs.cluster_run import ClusterPlan
from millbeck.simulation.runs.plan_files import parse_plan, plan_text

ENOUGH = Counts(quorum_elections=100, partition_elections=200, isr_changes=300, truncations=30, acknowledged=20_000)


def outcome(seed: int, counts: Counts, *problems: tuple[str, str]) -> campaign.SeedResult:
    return campaign.SeedResult(seed=seed, problems=problems, counts=counts, seconds=1.0, faults={"crash": 1})


def test_a_campaign_in_which_little_happened_is_empty() -> None:
    assert campaign.shortfalls(ENOUGH, 100) == []
    (missing,) = campaign.shortfalls(ENOUGH + Counts(truncations=-1), 100)
    assert missing == "29 truncations in 100 seeds, at least 30 are required"
    assert len(campaign.shortfalls(ENOUGH, 200)) == 4


def test_one_bad_seed_or_too_little_fails_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "run_seed", lambda seed: outcome(seed, ENOUGH))
    assert campaign.campaign(range(3), 1) == 0
    monkeypatch.setattr(campaign, "run_seed", lambda seed: outcome(seed, ENOUGH, ("D4", "went back")))
    assert campaign.campaign([17], 1) == 1
    assert "make sim SEED=17" in capsys.readouterr().out
    monkeypatch.setattr(campaign, "run_seed", lambda seed: outcome(seed, Counts()))
    assert campaign.campaign([17], 1) == 1


def test_a_plan_that_fails_is_made_smaller_and_written_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ClusterPlan.drawn(5)
    monkeypatch.setattr(campaign, "PLANS_DIRECTORY", str(tmp_path))
    monkeypatch.setattr(campaign, "run_plan", lambda each: outcome(each.seed, ENOUGH, ("D4", "went back")))
    assert campaign.replay(plan) == 1
    smaller = parse_plan((tmp_path / "5.json").read_text())
    assert smaller.schedule == ()
    monkeypatch.setattr(campaign, "run_plan", lambda each: outcome(each.seed, ENOUGH))
    (tmp_path / "again.json").write_text(plan_text(plan))
    assert campaign.main(["--plan", str(tmp_path / "again.json")]) == 0
