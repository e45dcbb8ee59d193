"""What ships for Prometheus and Grafana, and the page that explains it, name nothing that a node does not show."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.metrics import MetricKind, Registry
from millbeck.server.metrics.process import declare_process_metrics
from nemesis.rules import DASHBOARD, OF_TARGETS, ROOT, grouping_labels, labels_by_metric, metric_names, read_rules
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import run_scenario

MONITORING = ROOT / "docs" / "monitoring.md"
PAGES_IMMEDIATELY = (
    "kafka_controller_controllerstats_uncleanleaderelections_total",
    "kafka_controller_kafkacontroller_offlinepartitionscount",
    "kafka_server_replicamanager_underminisrpartitioncount",
    "kafka_server_replicamanager_underreplicatedpartitions",
    "kafka_controller_kafkacontroller_activecontrollercount",
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent",
    "kafka_network_socketserver_networkprocessoravgidle_percent",
    "kafka_consumergroup_current_offset",
    "kafka_controller_controllereventmanager_eventqueuetimems",
    "kafka_server_brokermetadatametrics_last_applied_record_lag_ms",
    "kafka_controller_kafkacontroller_lastappliedrecordlagms",
)


@pytest.fixture(scope="module")
def shown() -> dict[str, set[str]]:
    """Every name a query can ask a node for, with its labels."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> dict[str, set[str]]:
        assert harness.node is not None
        process = Registry()
        declare_process_metrics(process, dict, harness.node.listening.replies)
        found: dict[str, set[str]] = {"up": set()}
        for each in [*harness.node.registry.declarations, *process.declarations]:
            labels = set(each.labels)
            if each.kind is MetricKind.HISTOGRAM:
                found |= {f"{each.name}_sum": labels, f"{each.name}_count": labels}
                labels = labels | {"quantile"}
            found[each.name] = labels
        return found

    found: dict[str, set[str]] = run_scenario(scenario)
    return found


def check(expression: str, shown: dict[str, set[str]]) -> None:
    """That an expression asks only for what there is, by labels that there are."""
    assert expression.count("(") == expression.count(")"), expression
    names = metric_names(expression)
    assert names, expression
    assert names <= shown.keys(), expression
    for name, labels in labels_by_metric(expression).items():
        assert labels <= shown[name] | OF_TARGETS, expression
    known = set().union(*(shown[name] for name in names)) | OF_TARGETS
    assert grouping_labels(expression) <= known, expression


def test_the_rules_ask_for_what_a_node_shows(shown: dict[str, set[str]]) -> None:
    rules = read_rules()
    recorded = {
        rule.name: {"cluster", "consumergroup", "topic", "partition"} for rule in rules if rule.kind == "record"
    }
    assert len(rules) > 25
    for rule in rules:
        check(rule.expr, shown | recorded)


def test_every_alert_says_how_bad_it_is_and_what_to_do() -> None:
    alerts = [rule for rule in read_rules() if rule.kind == "alert"]
    assert len({alert.name for alert in alerts}) == len(alerts)
    for alert in alerts:
        assert alert.severity in ("page", "warning"), alert
        assert re.fullmatch(r"|\d+[smh]", alert.hold), alert
        assert set(alert.annotations) == {"summary", "description"}, alert
        assert all(text.endswith(".") for text in alert.annotations.values()), alert
        assert alert.annotations["summary"].count("{{") == alert.annotations["summary"].count("}}"), alert


def test_the_signals_that_page_immediately_do_in_their_order() -> None:
    rules = read_rules()
    recorded = {rule.name: rule.expr for rule in rules if rule.kind == "record"}
    positions = []
    for name in PAGES_IMMEDIATELY:
        found = [
            number
            for number, rule in enumerate(rules)
            if rule.severity == "page" and name in metric_names(_with(rule.expr, recorded))
        ]
        assert found, name
        positions.append(found[0])
    assert positions == sorted(positions)


def _with(expression: str, recorded: dict[str, str]) -> str:
    for _ in recorded:
        for name, meaning in sorted(recorded.items(), reverse=True):
            expression = re.sub(rf"(?<![\w:]){re.escape(name)}(?![\w:])", f"({meaning})", expression)
    return expression


def test_the_commands_that_alerts_name_exist() -> None:
    commands = (ROOT / "docs" / "generated" / "cli.md").read_text(encoding="utf-8")
    texts = [
        *(rule.annotations.get("description", "") for rule in read_rules()),
        MONITORING.read_text(encoding="utf-8"),
    ]
    found = [match for text in texts for match in re.findall(r"millbeck ((?:[a-z-]+ ?)+)((?:--[a-z-]+)?)", text)]
    known = [(words.strip(), option) for words, option in found if f"## millbeck {words.split()[0]}\n" in commands]
    assert len(known) > 5
    for words, option in known:
        longest = next(
            name for name in (" ".join(words.split()[:2]), words.split()[0]) if f"# millbeck {name}\n" in commands
        )
        section = commands.split(f"# millbeck {longest}\n")[1].split("\n#")[0]
        assert not option or option in section, (words, option)


def expressions(panel: dict[str, Any]) -> list[str]:
    return [target["expr"] for target in panel.get("targets", [])]


def test_the_dashboard_asks_for_what_a_node_shows(shown: dict[str, set[str]]) -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    recorded = {
        rule.name: {"cluster", "consumergroup", "topic", "partition"} for rule in read_rules() if rule.kind == "record"
    }
    panels = [panel for panel in dashboard["panels"] if panel["type"] != "row"]
    assert len(panels) > 20
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
    for panel in panels:
        assert panel["title"], panel
        assert expressions(panel), panel["title"]
        for expression in expressions(panel):
            check(expression.replace("$__rate_interval", "5m").replace("$topic", "t"), shown | recorded)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            name, label = re.fullmatch(r"label_values\((\w+)(?:\{[^}]*\})?, (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            assert label in shown[name] | OF_TARGETS, variable


def test_panels_do_not_lie_on_each_other() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, panel["title"]
                taken.add((x, y))


def test_the_page_on_monitoring_names_what_a_node_shows_and_every_alert(shown: dict[str, set[str]]) -> None:
    text = MONITORING.read_text(encoding="utf-8")
    names = set(re.findall(r"`((?:kafka|millbeck|process)_[a-z0-9_]+)(?:\{[^}`]*\})?`", text))
    assert len(names) > 30
    assert names <= shown.keys()
    for rule in read_rules():
        if rule.kind == "alert":
            assert f"`{rule.name}`" in text, rule.name


def test_a_name_that_no_node_shows_is_found(shown: dict[str, set[str]]) -> None:
    for expression in (
        "kafka_server_gone > 0",
        "sum by (cluster) (rate(kafka_server_gone_total[5m])) > 0",
        'up{job="x"} / kafka_gone{job="x"} > 0.8',
        'millbeck_loop_lag_ms{broker="1"}',
        "sum by (broker) (up)",
        "max(up",
    ):
        with pytest.raises(AssertionError):
            check(expression, shown)
    assert metric_names('a_total{x="b_total"} and on (c) d[5m] unless (rate(e_total[1h]) > 0.5 * f)') == {
        "a_total",
        "d",
        "e_total",
        "f",
    }
