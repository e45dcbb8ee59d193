"""The demo by Spark Connect: the session is a client, and Spark is a server with a Java of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from tests.spark.standalone import connect_server, run_demo


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_demo_runs_on_a_connect_server(tmp_path: Path) -> None:
    with connect_server(tmp_path) as address:
        # The driver needs no Java.
        run_demo(address, {"JAVA_HOME": "/nowhere"})
