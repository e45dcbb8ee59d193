"""The demo on a standalone Spark cluster: a master, a worker and a driver, each in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from standalone import standalone

ENDS_SECONDS_MAX = 560


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_demo_runs_on_a_standalone_master(tmp_path: Path) -> None:
    with standalone(tmp_path) as cluster:
        command = ("demo", "--master", cluster.url, "--seconds", "15", "--orders-per-second", "50")
        done = subprocess.run(
            [sys.executable, "-m", "millbeck.cli.main", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=ENDS_SECONDS_MAX,
            env=os.environ,
        )
        assert done.returncode == 0, done.stdout[-4000:]
        assert "every one of them the same" in done.stdout
        assert cluster.master.await_line("Registered app millbeck demo")
        # Tasks ran in an executor that the worker started, not in the driver.
        assert cluster.worker.await_line("Asked to launch executor")
