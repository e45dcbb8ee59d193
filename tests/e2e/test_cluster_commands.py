"""The commands that are about a cluster, against a node that is one by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from millbeck.cli.main import cli
from millbeck.testing import Broker, broker

Millbeck = Callable[..., str]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(data=tmp_path_factory.mktemp("node") / "logs") as running:
        yield running


@pytest.fixture
def run(node: Broker) -> Callable[..., Result]:
    def invoke(*arguments: str) -> Result:
        environment = {"MILLBECK_BOOTSTRAP": node.bootstrap}
        return CliRunner().invoke(cli, list(arguments), env=environment, prog_name="millbeck")

    return invoke


@pytest.fixture
def millbeck(run: Callable[..., Result]) -> Millbeck:
    """Runs a command that must succeed; what it printed."""

    def succeed(*arguments: str) -> str:
        done = run(*arguments)
        assert done.exit_code == 0, done.stderr
        return done.stdout

    return succeed


@pytest.fixture
def refused(run: Callable[..., Result]) -> Millbeck:
    """Runs a command that must fail; the line that says why."""

    def fail(*arguments: str) -> str:
        done = run(*arguments)
        assert done.exit_code == 1, done.stdout
        return done.stderr

    return fail


def test_the_clusters_id_and_nodes(node: Broker, millbeck: Millbeck, refused: Millbeck) -> None:
    shown = millbeck("cluster", "id")
    assert millbeck("cluster", "cluster-id") == shown
    (row,) = json.loads(millbeck("cluster", "list-endpoints", "--output", "json"))
    assert (row["id"], row["port"], row["state"]) == (1, node.port, "unfenced")
    assert "not currently registered" in refused("cluster", "unregister", "--id", "77")


def test_leaders_are_where_they_should_be(millbeck: Millbeck, refused: Millbeck) -> None:
    millbeck("topic", "create", "led")
    assert "election not needed" in millbeck("elect-leaders", "--topic", "led", "--partition", "0")
    assert "led-7" in refused("elect-leaders", "--topic", "led", "--partition", "7")
    millbeck("elect-leaders", "--all-topic-partitions")


def test_moving_a_partition_nowhere(millbeck: Millbeck, refused: Millbeck, tmp_path: Path) -> None:
    millbeck("topic", "create", "moved", "--partitions", "2")
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text('{"topics": [{"topic": "moved"}]}')
    generated = millbeck("reassign", "generate", "--topics-to-move-json-file", str(topics), "--broker-list", "1")
    plan.write_text(generated.strip().splitlines()[-1])
    arguments = ("--reassignment-json-file", str(plan))
    millbeck("reassign", "--execute", *arguments)
    assert millbeck("reassign", "verify", *arguments).count("done") == 2
    lines = [line for line in millbeck("reassign", "verify", *arguments, "-o", "json").splitlines() if line[0] == "{"]
    assert [(row["partition"], row["state"]) for row in map(json.loads, lines)] == [(0, "done"), (1, "done")]
    assert "no partition is moving" in millbeck("reassign", "list")
    plan.write_text('{"partitions": [{"topic": "moved", "partition": 0, "replicas": [1, 9]}]}')
    assert "moved-0" in refused("reassign", "execute", *arguments)


def test_features_are_shown_and_not_lowered_by_mistake(millbeck: Millbeck, refused: Millbeck) -> None:
    shown = {row["feature"]: row for row in json.loads(millbeck("feature", "describe", "--output", "json"))}
    assert shown["metadata.version"]["finalized"] == "4.3-IV0"
    assert "metadata.version" in refused("feature", "upgrade", "--release-version", "4.0-IV0")
