"""A query's lag shows in its group."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog


def test_a_query_commits_to_its_group(
    spark: SparkSession, log: LiveLog, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    from millbeck.pipeline.progress_groups import ProgressGroups

    topic = make_topic(2)
    log.put(topic, [{"value": b"%d" % number, "key": b"%d" % number} for number in range(200)])
    listener = ProgressGroups({"bootstrap.servers": log.bootstrap}, {"counting": "counting-group"})
    spark.streams.addListener(listener)
    try:
        query = (
            spark.readStream.format("millbeck")
            .option("kafka.bootstrap.servers", log.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.format("noop")
            .queryName("counting")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        deadline = time.monotonic() + 60
        while sum(log.committed("counting-group", topic).values()) < 200 and time.monotonic() < deadline:
            time.sleep(0.2)
    finally:
        spark.streams.removeListener(listener)
    ends: dict[int, int] = {}
    for partition, record in log.read(topic):
        ends[partition] = record.offset + 1
    assert log.committed("counting-group", topic) == ends
