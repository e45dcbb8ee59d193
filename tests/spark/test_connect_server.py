"""The demo by Spark Connect: the session is a client, and Spark is a server with a Java of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from standalone import connect_server

ENDS_SECONDS_MAX = 300


@pytest.mark.long
@pytest.mark.timeout(400)
def test_the_demo_runs_on_a_connect_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        command = ("demo", "--master", address, "--seconds", "15", "--orders-per-second", "50")
        done = subprocess.run(
            [sys.executable, "-m", "millbeck.cli.main", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENDS_SECONDS_MAX,
            # The driver needs no Java.
            env={**os.environ, "JAVA_HOME": "/nowhere"},
        )
    assert done.returncode == 0, done.stdout[-4000:]
    assert "every one of them the same" in done.stdout
