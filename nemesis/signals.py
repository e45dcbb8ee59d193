"""The signals that wake somebody up, each driven over its threshold and back, by the rules that ship.

All nodes are scraped twice a second and the page-severity rules of ops/prometheus are evaluated on what they say. Rules
have patience (five minutes, an hour): so that a run does not, the rules' clock is faster than the wall's by a factor
that each signal names. Only patience and windows are shortened by that; the nodes, and what they measure, are not.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace

from nemesis.alerts import Alerts, scrape
from nemesis.cluster import NemesisNode
from nemesis.rules import metric_names, read_rules
from nemesis.run import RunFailed

SCRAPE_EVERY_S = 0.5


class RulesClock:
    """Seconds that pass faster than the wall's, by a factor that may change and never sets it back."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._lock = threading.Lock()
        self._base_s = self._changed_s = now_s()
        self._factor = 1.0

    def read(self) -> float:
        with self._lock:
            return self._read()

    def _read(self) -> float:
        return self._base_s + (self._now_s() - self._changed_s) * self._factor

    def set_factor(self, factor: float) -> None:
        with self._lock:
            self._base_s, self._changed_s, self._factor = self._read(), self._now_s(), factor


class SignalWatch:
    """Scrapes in a thread of its own, and says what fires."""

    def __init__(self, members: list[NemesisNode]) -> None:
        rules = [rule for rule in read_rules() if rule.kind == "record" or rule.severity == "page"]
        self._wanted = {name for rule in rules for name in metric_names(rule.expr)}
        self._alerts = Alerts(rules)
        self._targets = {member.host.name: member.metrics_url for member in members}
        self.names = [rule.name for rule in rules if rule.kind == "alert"]
        self.clock = RulesClock()
        self.firing: frozenset[str] = frozenset()
        self.scrapes = 0
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._pool = ThreadPoolExecutor(len(members))
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        try:
            while not self._stopping.wait(SCRAPE_EVERY_S):
                pages = dict(zip(self._targets, self._pool.map(self._page, self._targets.values()), strict=True))
                self.firing = frozenset(self._alerts.scraped(self.clock.read(), pages))
                self.scrapes += 1
        except BaseException as failure:
            self._failure = failure

    def _page(self, url: str) -> str | None:
        """Only what the rules ask for: a page has a line for every partition."""
        page = scrape(url)
        if page is None:
            return None
        lines = page.splitlines(keepends=True)
        return "".join(line for line in lines if line.split("{", 1)[0].split(" ", 1)[0] in self._wanted)

    def await_state(self, alert: str, *, fires: bool, patience_s: float) -> float:
        """How long it took; fails when it does not come about."""
        assert alert in self.names, f"no alert {alert} ships"
        began_s = time.monotonic()
        while time.monotonic() < began_s + patience_s:
            if self._failure is not None:
                raise RunFailed(f"the rules cannot be evaluated: {self._failure!r}")
            if (alert in self.firing) is fires:
                return time.monotonic() - began_s
            time.sleep(0.1)
        raise RunFailed(f"{alert} did not {'fire' if fires else 'clear'} in {patience_s:.0f} s")

    def await_scrapes(self, count: int, patience_s: float = 60.0) -> None:
        wanted, deadline_s = self.scrapes + count, time.monotonic() + patience_s
        while self.scrapes < wanted:
            if self._failure is not None or time.monotonic() > deadline_s:
                raise RunFailed(f"the nodes were not scraped: {self._failure!r}")
            time.sleep(0.1)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)
        self._pool.shutdown(wait=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    alert: str
    factor: float
    fired_after_s: float | None = None
    cleared_after_s: float | None = None
    problem: str = ""


@dataclass(slots=True)
class Bench:
    """Drives one signal after the other and remembers how that went."""

    watch: SignalWatch
    report: Callable[[str], None]
    outcomes: list[Outcome]

    @contextmanager
    def signal(self, alert: str, *, factor: float, clearing_factor: float | None = None) -> Iterator[Driven]:
        """Around what drives a signal: it must be quiet before; inside, `Driven.fired` waits for it."""
        self.report(f"{alert}: driving it; the rules' clock runs {factor:.0f} times as fast")
        driven = Driven(self.watch, alert)
        problem = ""
        cleared_s: float | None = None
        try:
            self.watch.await_state(alert, fires=False, patience_s=60)
            self.watch.clock.set_factor(factor)
            yield driven
            self.watch.clock.set_factor(clearing_factor or factor)
            cleared_s = self.watch.await_state(alert, fires=False, patience_s=150)
            self.report(f"{alert}: cleared after {cleared_s:.1f} s")
        except RunFailed as failure:
            problem = str(failure)
            self.report(f"{alert}: {problem}")
        finally:
            self.watch.clock.set_factor(1)
        self.outcomes.append(
            Outcome(
                alert=alert,
                factor=factor,
                fired_after_s=driven.fired_s,
                cleared_after_s=cleared_s,
                problem=problem,
            )
        )

    def check_gone(self, alert: str) -> None:
        """A node that does not answer says nothing: what was driven is gone once all are back, too."""
        self.watch.await_scrapes(4)
        last = self.outcomes[-1]
        if alert in self.watch.firing and not last.problem:
            self.outcomes[-1] = replace(last, problem=f"{alert} came back")
            self.report(f"{alert} came back")


class Driven:
    def __init__(self, watch: SignalWatch, alert: str) -> None:
        self._watch = watch
        self._alert = alert
        self.fired_s: float | None = None

    def fired(self, patience_s: float = 90.0) -> None:
        self.fired_s = self._watch.await_state(self._alert, fires=True, patience_s=patience_s)


def table(outcomes: list[Outcome]) -> list[str]:
    lines = [f"{'signal':24}{'clock':>7}{'fired after':>14}{'cleared after':>16}"]
    for outcome in outcomes:
        fired = "never" if outcome.fired_after_s is None else f"{outcome.fired_after_s:.1f} s"
        cleared = "never" if outcome.cleared_after_s is None else f"{outcome.cleared_after_s:.1f} s"
        lines.append(f"{outcome.alert:24}{outcome.factor:>6.0f}x{fired:>14}{cleared:>16}  {outcome.problem}".rstrip())
    return lines
