from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from millbeck.cli.up_cluster import check_settings, places_of, screen
from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.embedded import Place, cluster_settings
from millbeck.server.local_cluster import format_cluster, settle_places


def placed(tmp_path: Path, count: int = 3) -> list[Place]:
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
    with pytest.raises(click.UsageError, match=r"node\.id is each node's own"):
        check_settings(["node.id=3"])
    with pytest.raises(click.UsageError, match="--set"):
        check_settings(["x"])


def test_the_screen_is_one_screen() -> None:
    shown = screen("::1", [{"port": 1, "metrics_port": 2}, {"port": 3, "metrics_port": 4}], data="/d", cluster_id="c")
    assert "bootstrap    [::1]:1,[::1]:3" in shown
    assert "2 nodes" in shown
    assert len(shown.splitlines()) <= 24


def test_usage(fails: Callable[..., str], tmp_path: Path) -> None:
    assert "--check is for one node" in fails("up", "--nodes", "3", "--check")
    environment = real_environment()
    places = settle_places(environment.files, str(tmp_path), placed(tmp_path), host="127.0.0.1")
    configs = [NodeConfig(cluster_settings(place, places, host="127.0.0.1")) for place in places]
    format_cluster(environment, str(tmp_path), places, configs)
    assert "holds a cluster of another size" in fails("up", "--nodes", "2", "--data", str(tmp_path), "--port", "0")
    assert "say how many with --nodes" in fails("up", "--data", str(tmp_path), "--port", "0")
