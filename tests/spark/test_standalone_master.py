"""The demo on a standalone Spark cluster: a master, a worker and a driver, each in processes of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from tests.spark.standalone import run_demo, standalone


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_demo_runs_on_a_standalone_master(tmp_path: Path) -> None:
    with standalone(tmp_path) as cluster:
        run_demo(cluster.url, {})
        assert cluster.master.await_line("Registered app millbeck demo")
        # Tasks ran in an executor that the worker started, not in the driver.
        assert cluster.worker.await_line("Asked to launch executor")
