"""FaultInjector that overlaps: what ends is undone in time, and only what nothing else still does."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import pytest

from nemesis import scenarios
from nemesis.scenarios import SCENARIOS, partition, pause


class FakeHost:
    def __init__(self, name: str) -> None:
        self.name = name
        self.cut: set[str] = set()
        self.longest_cut = 0

    def cut_off_from(self, other: FakeHost) -> None:
        self.cut.add(other.name)
        self.longest_cut = max(self.longest_cut, len(self.cut))

    def reach_again(self, other: FakeHost) -> None:
        self.cut.remove(other.name)


class FakeMember:
    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.pauses = 0
        self.is_paused = False

    def pause(self) -> None:
        assert not self.is_paused, "nobody is paused twice"
        self.is_paused = True
        self.pauses += 1

    def resume(self) -> None:
        assert self.is_paused
        self.is_paused = False


class FakeRun:
    """A run whose time passes only when it sleeps."""

    kill_every_s = 5.0

    def __init__(self, seed: int, seconds: float) -> None:
        self.rng = random.Random(seed)
        self.now_s = 0.0
        self.hosts = [FakeHost(name) for name in ("c1", "c2", "c3", "b1", "b2", "b3", "client")]
        members = [FakeMember(host) for host in self.hosts[:-1]]
        self.cluster = SimpleNamespace(members=members, controllers=members[:3], brokers=members[3:])
        self.network = SimpleNamespace(hosts={host.name: host for host in self.hosts})
        self.said = 0
        self._seconds = seconds

    @property
    def is_over(self) -> bool:
        return self.now_s >= self._seconds

    def sleep(self, seconds: float) -> None:
        self.now_s = min(self.now_s + max(seconds, 0.001), self._seconds)

    def report(self, _: str) -> None:
        self.said += 1

    def pick(self, members: list[Any]) -> Any:
        return self.rng.choice(members)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Any:
    run = FakeRun(3, 600)
    monkeypatch.setattr(scenarios, "time", SimpleNamespace(monotonic=lambda: run.now_s))
    return run


def test_pauses_come_every_five_seconds_and_overlap(run: Any) -> None:
    pause(run)
    assert run.said == 120
    assert sum(member.pauses for member in run.cluster.brokers) > sum(one.pauses for one in run.cluster.controllers)
    assert sum(member.is_paused for member in run.cluster.members) <= 3, "what began long ago has ended"


def test_a_cut_is_healed_when_nothing_else_makes_it(run: Any) -> None:
    partition(run)
    assert run.said == 120
    assert max(host.longest_cut for host in run.hosts) == 6
    # Healing what is not cut fails: so nothing is healed twice, or while another cut of the same path lasts.
    assert 0 < sum(len(host.cut) for host in run.hosts) <= 4 * 12, "what began long ago has ended"


def test_the_safety_runs_have_the_bar_of_ten_minutes() -> None:
    for name in ("kill", "pause", "partition"):
        scenario = SCENARIOS[name]
        assert (scenario.seconds, scenario.bar.acknowledged_min, scenario.bar.leader_changes_min) == (600, 50_000, 30)


@pytest.mark.parametrize(("name", "apart_s", "both_s"), [("availability", 10.5, 12.5), ("availability-fast", 3.0, 4.0)])
def test_nodes_with_both_roles_have_the_time_of_an_election_besides(name: str, apart_s: float, both_s: float) -> None:
    scenario = SCENARIOS[name]
    assert (scenario.bar.window_max_s, scenario.bar_of_both_roles().window_max_s) == (apart_s, both_s)
    assert SCENARIOS["kill"].bar_of_both_roles() == SCENARIOS["kill"].bar
