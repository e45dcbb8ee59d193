from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from millbeck.cli.nodes.node_processes import NodeCommand
from millbeck.cli.nodes.up_cluster import check_settings, parse_racks, places_of, run_cluster
from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.cluster import format_cluster, restore_layouts
from millbeck.server.local.embedded import FAST_FAILOVER, NodePlacement, cluster_settings


def placed(tmp_path: Path, count: int = 3) -> list[NodePlacement]:
    return places_of(count, str(tmp_path), host="127.0.0.1", port=9092, metrics_port=9404)


def test_ports_follow_from_the_first(tmp_path: Path) -> None:
    places = placed(tmp_path)
    assert [(each.port, each.controller_port, each.metrics_port) for each in places] == [
        (9092, 9093, 9404),
        (9102, 9103, 9405),
        (9112, 9113, 9406),
    ]
    assert [each.directory for each in places] == [str(tmp_path / f"node-{number}") for number in (1, 2, 3)]


def test_free_ports_are_all_different(tmp_path: Path) -> None:
    places = places_of(3, str(tmp_path), host="127.0.0.1", port=0, metrics_port=9404)
    assert len({port for each in places for port in (each.port, each.controller_port)}) == 6
    assert {each.metrics_port for each in places} == {0}


def test_what_is_each_nodes_own_is_not_for_set() -> None:
    check_settings(["num.partitions=3"])
    with pytest.raises(click.UsageError, match=r"node\.id differs between nodes"):
        check_settings(["node.id=3"])
    with pytest.raises(click.UsageError, match="--set"):
        check_settings(["x"])


def test_racks_are_named_and_not_more_than_nodes() -> None:
    assert parse_racks("a, b,c", 3) == ["a", "b", "c"]
    with pytest.raises(click.UsageError, match="has an empty rack name"):
        parse_racks("a,,c", 3)
    with pytest.raises(click.UsageError, match="3 racks for 2 nodes"):
        parse_racks("a,b,c", 2)
    check_settings(["broker.rack=a"])
    with pytest.raises(click.UsageError, match=r"broker\.rack and --racks cannot be combined"):
        check_settings(["broker.rack=a"], ["b"])


def configs_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **options: Any) -> tuple[list[NodeConfig], str]:
    """What `run_cluster` would start four nodes with, and what the screen says of failover."""
    found: list[NodeConfig] = []
    told = []

    async def start(
        orders: Sequence[NodeCommand], *, screen: Callable[[list[dict[str, int]], str], str], **others: object
    ) -> None:
        found.extend(NodeConfig(order.settings) for order in orders)
        shown = screen([{"port": 1, "metrics_port": 2}], "")
        told.append(next(line for line in shown.splitlines() if "failover " in line).split(maxsplit=1)[1])

    monkeypatch.setattr("millbeck.cli.nodes.up_cluster._run", start)
    given: dict[str, Any] = {"settings": (), "racks": (), "is_fast": True, "is_secure": False} | options
    run_cluster(4, directory=str(tmp_path), is_memory=False, host="", port=9092, metrics_port=0, verbose=False, **given)
    return found, told[0]


def test_nodes_fail_over_fast_unless_told_otherwise(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KAFKA_BROKER_SESSION_TIMEOUT_MS", raising=False)
    configs, told = configs_of(monkeypatch, tmp_path)
    assert {each.texts[name] == value for name, value in FAST_FAILOVER.items() for each in configs} == {True}
    assert told == "1.5 s after a node's last heartbeat (--failover kafka: 9 s)"
    configs, told = configs_of(monkeypatch, tmp_path, is_fast=False)
    assert not {name for name in FAST_FAILOVER for each in configs if name in each.texts}
    assert told == "9 s after a node's last heartbeat"
    configs, told = configs_of(monkeypatch, tmp_path, settings=["broker.session.timeout.ms=4000"])
    assert {each.membership.broker_session_timeout_ms for each in configs} == {4000}
    assert told.startswith("4 s after")
    monkeypatch.setenv("KAFKA_BROKER_SESSION_TIMEOUT_MS", "5000")
    assert configs_of(monkeypatch, tmp_path)[1].startswith("5 s after")


def test_racks_go_round_and_beat_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KAFKA_BROKER_RACK", "x")
    configs, _ = configs_of(monkeypatch, tmp_path, racks=["a", "b", "c"])
    assert [each.node.broker_rack for each in configs] == ["a", "b", "c", "a"]
    configs, _ = configs_of(monkeypatch, tmp_path)
    assert [each.node.broker_rack for each in configs] == ["x"] * 4


def test_usage(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "--check works with one node only" in fails("up", "--nodes", "3", "--check")
    for option in (("--racks", "a"), ("--failover", "fast")):
        assert f"{option[0]} needs --nodes greater than 1" in fails("up", *option)
    environment = real_environment()
    places = restore_layouts(environment.files, str(tmp_path), placed(tmp_path), host="127.0.0.1")
    configs = [NodeConfig(cluster_settings(place, places, host="127.0.0.1")) for place in places]
    format_cluster(environment, str(tmp_path), places, configs)
    assert "holds a cluster of another size" in fails("up", "--nodes", "2", "--data", str(tmp_path), "--port", "0")
    assert "give the number of nodes with --nodes" in fails("up", "--data", str(tmp_path), "--port", "0")
