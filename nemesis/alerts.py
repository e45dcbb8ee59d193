"""Which of the shipped alerts fire: pages of metrics in, names of alerts out, with the patience of each rule.

A run that does harm asks after each scrape; an alert that should have come and did not, or does not go away again, is
its finding.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.error import URLError
from urllib.request import urlopen

from nemesis.queries import History, Samples, evaluate, parse, read_page, seconds
from nemesis.rules import Rule, read_rules

JOB = "millbeck"
SCRAPE_TIMEOUT_S = 5.0


class Alerts:
    """The rules at work over a history of scrapes."""

    def __init__(self, rules: list[Rule] | None = None) -> None:
        self.rules = read_rules() if rules is None else rules
        self.history = History()
        self._parsed = {rule.name: parse(rule.expr) for rule in self.rules}
        self._since: dict[str, float] = {}

    def scraped(self, now_s: float, pages: Mapping[str, str | None]) -> list[str]:
        """The alerts that fire after a scrape of these targets; None is one that did not answer."""
        samples: Samples = {}
        for target, text in pages.items():
            page = {} if text is None else read_page(text, instance=target, job=JOB)
            page["up"] = {frozenset({("instance", target), ("job", JOB)}): 0.0 if text is None else 1.0}
            for name, vector in page.items():
                samples.setdefault(name, {}).update(vector)
        self.history.add(now_s, samples)
        return [rule.name for rule in self.rules if self._fires(rule, now_s)]

    def _fires(self, rule: Rule, now_s: float) -> bool:
        vector = evaluate(self._parsed[rule.name], self.history, now_s)
        if rule.kind == "record":
            self.history.latest()[rule.name] = vector
            return False
        if not vector:
            self._since.pop(rule.name, None)
            return False
        return now_s - self._since.setdefault(rule.name, now_s) >= seconds(rule.hold)


def scrape(url: str) -> str | None:
    """A node's page; None when there is no answer."""
    try:
        with urlopen(url, timeout=SCRAPE_TIMEOUT_S) as answer:
            return str(answer.read(), "utf-8")
    except (URLError, OSError):
        return None
