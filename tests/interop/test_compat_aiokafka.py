"""FastStream, and the examples in aiokafka's README, on millbeck's clients: unchanged programs of others.

The examples are taken from aiokafka's source distribution when the test runs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from bench.systems import Node
from tools.peers import PeerUnavailable, peer_path

PROGRAMS = Path(__file__).parent / "programs"


def path_of(peer: str) -> Path:
    try:
        return peer_path(peer)
    except PeerUnavailable as missing:
        pytest.skip(str(missing))


def test_faststream_runs_on_millbeck_s_clients(node: Node) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAMS / "faststream_app.py"), node.bootstrap, str(path_of("faststream"))],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == ["Ada is number 1", ["a", "b"]]


def examples(bootstrap: str) -> list[str]:
    """The complete programs in aiokafka's README."""
    text = (path_of("aiokafka-source") / "README.rst").read_text(encoding="utf-8")
    blocks = re.findall(r"\.\. code-block:: python\n\n((?:    .*\n|\n)+)", text)
    programs = [textwrap.dedent(block).replace("localhost:9092", bootstrap) for block in blocks]
    return [program for program in programs if "asyncio.run" in program]


def test_the_examples_of_aiokafka_s_readme_run(node: Node, tmp_path: Path) -> None:
    producing, consuming = examples(node.bootstrap)
    for name, program in (("produce.py", producing), ("consume.py", consuming)):
        (tmp_path / name).write_text(program, encoding="utf-8")
    run = [sys.executable, "-u", str(PROGRAMS / "with_compat.py")]
    with subprocess.Popen([*run, str(tmp_path / "consume.py")], stdout=subprocess.PIPE, text=True) as consumer:
        try:
            end_s = time.monotonic() + 60
            # The consumer begins at the end of the topic, so records are sent until it has seen one.
            while time.monotonic() < end_s:
                subprocess.run([*run, str(tmp_path / "produce.py")], check=True, timeout=60)
                if _has_output(consumer):
                    break
            assert consumer.stdout is not None
            assert re.match(r"consumed:  my_topic 0 \d+ None b'Super message' \d+", consumer.stdout.readline())
        finally:
            consumer.kill()


def _has_output(process: subprocess.Popen[str]) -> bool:
    import select

    assert process.stdout is not None
    return bool(select.select([process.stdout], [], [], 1.0)[0])
