"""The rules' clock, what fires on scraped pages, and what is remembered of a signal that does not."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from nemesis import signals
from nemesis.alarming import DRIVES
from nemesis.rules import Rule, read_rules
from nemesis.run import RunFailed
from nemesis.signals import Bench, RulesClock, SignalWatch, table


def test_the_clock_changes_its_pace_and_never_jumps() -> None:
    now = [100.0]
    clock = RulesClock(lambda: now[0])
    now[0] += 2
    assert clock.read() == 102
    clock.set_factor(60)
    assert clock.read() == 102
    now[0] += 3
    assert clock.read() == 102 + 180
    clock.set_factor(1)
    now[0] += 1
    assert clock.read() == 102 + 181


PAGES = {"http://a": "broken 0\nother 1\n", "http://b": "broken 0\n"}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[SignalWatch]:
    rules = [
        Rule(kind="alert", name="Broken", expr="sum(broken) > 0", severity="page"),
        Rule(kind="alert", name="Later", expr="sum(broken) > 5", severity="warning"),
    ]
    monkeypatch.setattr(signals, "read_rules", lambda: rules)
    monkeypatch.setattr(signals, "SCRAPE_EVERY_S", 0.01)
    monkeypatch.setattr(signals, "scrape", lambda url: PAGES[url])
    members: list[Any] = [
        SimpleNamespace(host=SimpleNamespace(name=name), metrics_url=f"http://{name}") for name in "ab"
    ]
    watch = SignalWatch(members)
    yield watch
    watch.stop()


def test_every_signal_that_wakes_somebody_up_is_driven() -> None:
    assert list(DRIVES) == [rule.name for rule in read_rules() if rule.severity == "page"]


def test_what_comes_back_when_all_nodes_answer_was_not_gone(
    watch: SignalWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(watch, lambda _: None, [])
    with bench.signal("Broken", factor=60) as driven, monkeypatch.context() as patch:
        patch.setitem(PAGES, "http://b", "broken 1\n")
        driven.fired(10)
    bench.check_gone("Broken")
    assert bench.outcomes[0].problem == ""
    monkeypatch.setitem(PAGES, "http://b", "broken 1\n")
    bench.check_gone("Broken")
    assert bench.outcomes[0].problem == "Broken came back"


def test_a_signal_that_fires_and_clears(watch: SignalWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(watch, lambda _: None, [])
    assert watch.names == ["Broken"], "only what wakes somebody up"
    with bench.signal("Broken", factor=60) as driven, monkeypatch.context() as patch:
        patch.setitem(PAGES, "http://b", "broken 1\n")
        driven.fired(10)
    (outcome,) = bench.outcomes
    assert outcome.problem == ""
    assert outcome.fired_after_s is not None
    assert outcome.cleared_after_s is not None
    assert "never" not in "".join(table(bench.outcomes))


def test_a_signal_that_does_not_fire_is_remembered_as_a_problem(watch: SignalWatch) -> None:
    bench = Bench(watch, lambda _: None, [])
    with bench.signal("Broken", factor=60) as driven:
        driven.fired(0.1)
    (outcome,) = bench.outcomes
    assert outcome.problem == "Broken did not fire in 0 s"
    assert "never" in table(bench.outcomes)[1]


def test_a_page_that_cannot_be_read_ends_the_wait(watch: SignalWatch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAGES, "http://b", "broken one\n")
    with pytest.raises(RunFailed, match="cannot be evaluated"):
        watch.await_state("Broken", fires=True, patience_s=10)
