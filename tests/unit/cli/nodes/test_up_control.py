"""The verbs of ``millbeck up`` for what runs in another terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from millbeck.cli.nodes.running_nodes import announce


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def test_a_single_node_is_shown_and_has_no_nodes_to_stop(run: Callable[..., Result], fails: Callable[..., str]) -> None:
    with announce(data="/d", bootstrap="127.0.0.1:9092"):
        (row,) = json.loads(run("up", "status", "-o", "json").stdout)
        assert (row["state"], row["bootstrap"], row["data"]) == ("running", "127.0.0.1:9092", "/d")
        assert "127.0.0.1:9092" in run("up", "status").stdout
        assert "runs a single node here" in fails("up", "kill", "1")
        assert "does not run with --data /other" in fails("up", "status", "--data", "/other")


def test_nothing_there_and_wrong_commands_say_what_helps(fails: Callable[..., str]) -> None:
    assert fails("up", "stop", "2") == "millbeck up does not run: start it with `millbeck up --nodes 3`"
    assert "did you mean status?" in fails("up", "statu")
    assert "Missing argument 'NODE'" in fails("up", "start")
    assert "is not a whole number" in fails("up", "kill", "two")
