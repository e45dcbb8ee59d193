"""The registry of `millbeck up`: a process that the first connection starts, and that ends with the node."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.testing import broker, registry

pytest.importorskip("uvicorn")


@pytest.fixture
def node() -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "millbeck.cli.main", "up", "--memory", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl-C" in line:
            break
    found = re.search(r"registry +(http://\S+)", "".join(lines))
    assert found is not None, lines
    yield process, found[1]
    process.send_signal(signal.SIGINT)
    process.wait(30)
    process.stdout.close()


def call(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def children(process_id: int) -> list[int]:
    found = Path(f"/proc/{process_id}/task/{process_id}/children")
    return [int(each) for each in found.read_text().split()] if found.exists() else []


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_the_first_connection_starts_it(node: tuple[subprocess.Popen[str], str]) -> None:
    process, url = node
    assert not [each for each in children(process.pid) if _is_registry(each)]
    assert call(f"{url}/subjects/a/versions", {"schema": '"int"'})["id"] == 1
    (first,) = [each for each in children(process.pid) if _is_registry(each)]
    subprocess.run(["kill", "-9", str(first)], check=True)
    while _is_registry(first):
        pass
    assert call(f"{url}/schemas/ids/1")["schema"] == '"int"'


def _is_registry(process_id: int) -> bool:
    try:
        return b"registry" in Path(f"/proc/{process_id}/cmdline").read_bytes()
    except OSError:
        return False


def test_a_registry_for_tests() -> None:
    with broker() as running, registry(running.bootstrap) as url:
        assert call(f"{url}/subjects") == []
