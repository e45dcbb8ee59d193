"""``millbeck up --secure``: kcat and Kafka's own tools use the files that it writes, unedited."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from millbeck.kernel.properties import parse_properties
from tests.e2e.test_up_secure import running
from tests.interop.cluster import tool_command
from tools import peers

TIMEOUT_S = 90


@pytest.fixture(scope="module", params=[1, 3], ids=["one node", "three nodes"])
def files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    data = tmp_path_factory.mktemp("up") / "data"
    with running(data, *(("--nodes", str(request.param)) if request.param > 1 else ())):
        yield data / "security"


def asked(directory: Path, *command: str, stdin: str = "") -> str:
    done = subprocess.run(
        command, cwd=directory, input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_kcat(files: Path) -> None:
    kcat = str(peers.peer_path("kcat"))
    asked(files, kcat, "-F", "app.kcat.conf", "-P", "-t", "kcat", stdin="one\ntwo\n")
    assert asked(files, kcat, "-F", "app.kcat.conf", "-C", "-t", "kcat", "-e", "-q").splitlines() == ["one", "two"]


def test_kafkas_tools(files: Path) -> None:
    bootstrap = parse_properties((files / "app.properties").read_text())["bootstrap.servers"]

    def tool(name: str, config: str, *arguments: str) -> str:
        place = ("--bootstrap-server", bootstrap, "--command-config", config)
        return asked(files, *tool_command(name, *place, *arguments))

    tool("kafka-topics", "app.properties", "--create", "--topic", "java")
    deadline_s = time.monotonic() + TIMEOUT_S
    while "java" not in tool("kafka-topics", "app.properties", "--list").splitlines():
        assert time.monotonic() < deadline_s
    assert "app" in tool("kafka-configs", "admin.properties", "--describe", "--entity-type", "users")
