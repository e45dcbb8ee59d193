from __future__ import annotations

from nemesis.alerts import Alerts, scrape
from nemesis.rules import Rule


def test_an_alert_has_patience_and_goes_away() -> None:
    alerts = Alerts([Rule(kind="alert", name="Late", expr="a > 1", hold="1m")])
    assert alerts.scraped(0, {"n1": "a 2\n"}) == []
    assert alerts.scraped(30, {"n1": "a 3\n"}) == []
    assert alerts.scraped(60, {"n1": "a 4\n"}) == ["Late"]
    assert alerts.scraped(75, {"n1": "a 1\n"}) == []
    assert alerts.scraped(90, {"n1": "a 2\n"}) == [], "patience begins anew"
    assert alerts.scraped(150, {"n1": "a 2\n"}) == ["Late"]


def test_what_is_recorded_can_be_asked_for() -> None:
    alerts = Alerts(
        [
            Rule(kind="record", name="all:a", expr="sum(a)"),
            Rule(kind="alert", name="Growing", expr="deriv(all:a[5m]) > 0 and all:a > 3"),
        ]
    )
    assert [alerts.scraped(60 * number, {"x": f"a {number}\n", "y": "a 1\n"}) for number in range(5)] == [
        [],
        [],
        [],
        ["Growing"],
        ["Growing"],
    ]


def test_a_target_that_does_not_answer_is_down() -> None:
    alerts = Alerts([Rule(kind="alert", name="Down", expr='up{job="millbeck"} == 0')])
    assert alerts.scraped(0, {"x": "a 1\n", "y": "a 1\n"}) == []
    assert alerts.scraped(1, {"x": "a 1\n", "y": None}) == ["Down"]
    assert scrape("http://127.0.0.1:1/metrics") is None


def test_every_shipped_rule_can_be_evaluated() -> None:
    alerts = Alerts()
    assert len(alerts.rules) > 25
    assert alerts.scraped(0, {"n1": "a 1\n"}) == []
