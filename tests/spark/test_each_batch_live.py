"""Results as they change, written batch by batch, each batch once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="the extra spark is not installed")

from millbeck.pipeline.each_batch import to_log
from millbeck.pipeline.errors import InvalidOption

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog


def test_updates_are_written_once_though_a_batch_is_repeated(
    spark: SparkSession, log: LiveLog, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    source, target = make_topic(1), make_topic(2)
    options = {
        "kafka.bootstrap.servers": log.bootstrap,
        "topic": target,
        "delivery": "exactly_once",
        "checkpointLocation": str(tmp_path),
    }

    def run() -> list[tuple[Any, Any]]:
        records = (
            spark.readStream.format("millbeck")
            .options(**{"kafka.bootstrap.servers": log.bootstrap, "subscribe": source, "startingOffsets": "earliest"})
            .load()
        )
        counts = records.groupBy("key").count().selectExpr("key", "string(count) AS value")
        writer = counts.writeStream.outputMode("update").foreachBatch(to_log(options, partitions=2))
        writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start().awaitTermination()
        return sorted((record.key, record.value) for _, record in log.read(target))

    log.put(source, [{"key": b"a", "value": b""}, {"key": b"b", "value": b""}, {"key": b"a", "value": b""}])
    assert run() == [(b"a", b"2"), (b"b", b"1")]
    log.put(source, [{"key": b"a", "value": b""}])
    expected = [(b"a", b"2"), (b"a", b"3"), (b"b", b"1")]
    assert run() == expected
    for name in ("1", ".1.crc"):
        # As after a kill between the end of the transaction and Spark's own note of the batch.
        (tmp_path / "commits" / name).unlink(missing_ok=True)
    assert run() == expected


def test_exactly_once_needs_to_know_the_partitions(spark: SparkSession) -> None:
    options = {
        "kafka.bootstrap.servers": "h:1",
        "delivery": "exactly_once",
        "kafka.transactional.id": "t",
        "topic": "a",
    }
    with pytest.raises(InvalidOption, match="partition count"):
        to_log(options)(spark.range(1).selectExpr("string(id) AS value"), 0)
