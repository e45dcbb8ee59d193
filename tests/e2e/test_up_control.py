"""``millbeck up --nodes 3`` in one terminal, and its nodes looked at, killed and started from another."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest

SECONDS_MAX = 60


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}


@pytest.fixture
def up(tmp_path: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "millbeck.cli.main", "up", "--nodes", "3", "--port", "0", "--memory"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    lines = _read_until(process.stdout, "Ctrl-C stops all of them.")
    (tmp_path / "screen").write_text(lines)
    yield process
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS_MAX)


def _read_until(lines: IO[str], text: str) -> str:
    read = ""
    for line in lines:
        read += line
        if text in line:
            return read
    raise AssertionError(f"it ended without: {text}")


def _control(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millbeck.cli.main", "up", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS_MAX, env=environment)


def _registered_id(tmp_path: Path) -> int | None:
    """The id of a schema that is registered with the cluster's registry; None where the registry is not installed."""
    found = re.search(r"registry +(http://\S+)", (tmp_path / "screen").read_text())
    if found is None:
        return None
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{found[1]}/subjects/a/versions", b'{"schema": "\\"int\\""}', headers)
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:
        return int(json.load(answer)["id"])


def test_a_node_is_killed_and_started_from_another_terminal(
    up: subprocess.Popen[str], environment: dict[str, str], tmp_path: Path
) -> None:
    def states() -> list[Any]:
        rows = json.loads(_control(environment, "status", "-o", "json").stdout)
        return [(row["node"], row["state"]) for row in rows]

    def process_of(node: int) -> int:
        rows = json.loads(_control(environment, "status", "-o", "json").stdout)
        return int(rows[node - 1]["pid"])

    assert states() == [(1, "running"), (2, "running"), (3, "running")]
    if sys.platform == "linux":
        assert Path(f"/proc/{process_of(2)}/comm").read_text().strip() == "millbeck-node-2"
    killed = _control(environment, "kill", "2")
    assert (killed.returncode, "node 2 is killed" in killed.stdout) == (0, True), killed.stderr
    assert states()[1] == (2, "stopped")
    assert _registered_id(tmp_path) in (1, None)
    started = _control(environment, "start", "2")
    assert (started.returncode, "node 2 is ready" in started.stdout) == (0, True), started.stderr
    assert states()[1] == (2, "running")
    wrong = _control(environment, "stop", "9")
    assert wrong.returncode == 1
    assert wrong.stderr == "millbeck: there is no node 9: it is one of 1, 2, 3\n"
    assert "asked process" in _control(environment, "stop").stdout
    assert up.wait(SECONDS_MAX) == 0
    gone = _control(environment, "status")
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr.startswith("millbeck: millbeck up does not run: start it with")
