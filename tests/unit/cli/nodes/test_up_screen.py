"""The screens of ``millbeck up``."""

from __future__ import annotations

import ast
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.cli.nodes.up_cluster import failover_text
from millbeck.cli.nodes.up_screen import cluster_screen, screen, secure_cluster_screen, secure_screen

LINES_MAX = 23
"""A terminal of 24 lines keeps one for the cursor."""
WIDTH_MAX = 79
ANSWERS = [{"port": 9092 + 10 * number, "metrics_port": 9404 + number} for number in range(3)]
FAILOVER = failover_text(1500)


def node(host: str, port: int = 9092) -> Any:
    listener = SimpleNamespace(address=SimpleNamespace(host=host), port=port)
    return SimpleNamespace(listeners=[listener], metrics_port=9404, cluster_id="abc")


DATA = "/srv/projects/orders/.millbeck"
SCREENS = {
    "a node": screen(node("127.0.0.1"), "/srv/projects/orders/.millbeck", "http://127.0.0.1:8081"),
    "another port": screen(node("127.0.0.1", 65535), "/data", "pip install 'millbeck[registry]'"),
    "three nodes": cluster_screen(
        "127.0.0.1", ANSWERS, data="/srv/projects/orders/.millbeck", failover=FAILOVER, registry="http://127.0.0.1:8081"
    ),
    "a secured node": secure_screen(node("127.0.0.1", 65535), DATA, is_memory=True),
    "three secured nodes": secure_cluster_screen("127.0.0.1", ANSWERS, data=DATA, is_memory=True),
}


@pytest.mark.parametrize("shown", SCREENS.values(), ids=SCREENS.keys())
def test_it_fits_a_terminal(shown: str) -> None:
    assert len(shown.splitlines()) <= LINES_MAX
    assert max(map(len, shown.splitlines())) <= WIDTH_MAX


@pytest.mark.parametrize("shown", SCREENS.values(), ids=SCREENS.keys())
def test_the_python_lines_are_python_and_deliver(shown: str) -> None:
    lines = [line.strip() for line in shown.splitlines()]
    begin = next(number for number, line in enumerate(lines) if line.endswith("from confluent_kafka import Producer"))
    ast.parse("\n".join(lines[begin : begin + 3]))
    assert "p.flush()" in lines[begin + 2]


def test_addresses_are_there_to_copy() -> None:
    shown = SCREENS["a node"]
    assert "bootstrap    127.0.0.1:9092" in shown
    assert "http://127.0.0.1:9404/metrics" in shown
    assert "registry     http://127.0.0.1:8081" in shown
    assert 'format("millbeck")' in shown
    assert "Ctrl-C" in shown
    assert "docs/" in shown
    assert "every interface" not in shown
    assert "export" not in shown
    assert "export MILLBECK_BOOTSTRAP=127.0.0.1:65535" in SCREENS["another port"]
    assert "in memory" in screen(node(""), None)
    assert "[::1]:9092" in screen(node("::1"), None)


@pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "::"])
def test_a_node_that_is_open_to_anybody_says_so(wildcard: str) -> None:
    shown = screen(node(wildcard), None)
    assert "bootstrap    localhost:9092" in shown
    assert f"on every interface, without login: {socket.gethostname()}:9092" in shown


def test_a_secured_node_says_where_the_files_for_clients_are() -> None:
    for name in ("a secured node", "three secured nodes"):
        shown = SCREENS[name]
        assert f"cd {DATA}/security\n" in shown
        assert "--command-config app.properties" in shown
        assert "kcat -F app.kcat.conf" in shown
        assert 'open("app.json")' in shown
    assert "cd '/with a blank/security'" in secure_screen(node("h"), "/with a blank", is_memory=False)


def test_several_nodes_and_how_to_stop_one_of_them() -> None:
    shown = cluster_screen("::1", ANSWERS[:2], data="/d", failover="soon")
    assert "bootstrap    [::1]:9092,[::1]:9102" in shown
    assert "2 nodes" in shown
    assert "registry" not in shown
    assert "registry     http://127.0.0.1:8081" in SCREENS["three nodes"]
    assert "failover     soon" in shown
    assert "millbeck up kill 2" in shown
