"""One Spark session and one node for all the tests here; both take seconds to start."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

SHORT_LIVED_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
"""Java compiles once and quickly: these queries are over before it would have compiled them well."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog
    from tests.spark.waves import Waves


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first of them waits for Java to start, whatever else the machine does."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.timeout(300))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    pytest.importorskip("pyspark", reason="the extra spark is not installed")
    from millbeck.pipeline.session import spark_session

    # Spark's workers import what tests define.
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    os.environ.setdefault("JDK_JAVA_OPTIONS", SHORT_LIVED_JAVA)
    settings = {
        # One Java for all the queries of all the tests; a task that finds no memory ends it.
        "spark.driver.memory": "2g",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.streaming.stopTimeout": "60s",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.log.level": "ERROR",
    }
    session = spark_session("millbeck tests", master="local[2]", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def log() -> Iterator[LiveLog]:
    """A node, and a client to look at it with."""
    from millbeck.testing.broker_process import broker
    from tests.spark.live_log import LiveLog

    settings = {
        "num.partitions": "1",
        "auto.create.topics.enable": "false",
        "log.cleaner.backoff.ms": "200",
        # A worker that has vanished is missed soon.
        "group.min.session.timeout.ms": "500",
    }
    with broker(settings) as running:
        live = LiveLog(running)
        yield live
        live.close()


@pytest.fixture
def make_topic(log: LiveLog) -> Callable[..., str]:
    """A topic of a new name."""

    def make(partitions: int = 1, **settings: str) -> str:
        name = f"t-{uuid4().hex[:12]}"
        log.create(name, partitions, **settings)
        return name

    return make


@pytest.fixture
def waves(spark: SparkSession, log: LiveLog, make_topic: Callable[..., str], tmp_path: Path) -> Waves:
    from tests.spark.waves import Waves

    return Waves(spark, log, make_topic, tmp_path)
