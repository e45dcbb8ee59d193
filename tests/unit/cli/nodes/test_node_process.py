"""One node of several: it says when it is ready, and ends with its parent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import format_directories

PROGRAM = "from millbeck.cli.nodes.node_process import main; main()"
NAME = "millbeck-node-7"


def start(settings: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, NAME],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps({"settings": settings, "verbose": False}) + "\n")
    process.stdin.flush()
    return process


def test_it_says_where_it_is_and_ends_with_its_parent(tmp_path: Path) -> None:
    settings = embedded_settings(str(tmp_path), host="127.0.0.1", port=0, metrics_port=0)
    format_directories(real_environment(), NodeConfig(settings))
    process = start(settings)
    assert process.stdout is not None
    answer = json.loads(process.stdout.readline())
    assert answer["port"] > 0
    assert answer["metrics_port"] > 0
    if sys.platform == "linux":
        assert Path(f"/proc/{process.pid}/comm").read_text().strip() == NAME
        # Settings may hold passwords, and anybody may read arguments.
        assert str(tmp_path) not in Path(f"/proc/{process.pid}/cmdline").read_text()
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert (tmp_path / ".kafka_cleanshutdown").is_file()


def test_what_is_wrong_is_said_in_one_line(tmp_path: Path) -> None:
    for settings in ({"listeners": "nonsense"}, {"log.dirs": str(tmp_path / "new"), "listeners": "PLAINTEXT://:0"}):
        process = start(settings)
        out, error = process.communicate(timeout=60)
        assert (out, process.returncode) == ("", 1)
        assert error.startswith("millbeck: ")
        assert error.count("\n") == 1
