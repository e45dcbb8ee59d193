"""Spark reads a node: what was put in comes out, once, also over restarts, and errors say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.spark.live_log import LiveLog

MakeTopic = Callable[..., str]


def records(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "value": None if number % 50 == 7 else b"v%d" % number,
            "key": None if number % 3 == 0 else b"k%d" % (number % 11),
            "headers": [("h", b"%d" % number), ("h", None)] if number % 4 == 0 else [],
            "timestamp": 1_700_000_000_000 + number,
        }
        for number in range(first, first + count)
    ]


def reading(spark: SparkSession, log: LiveLog, topic: str, **options: str) -> Any:
    given = {"kafka.bootstrap.servers": log.bootstrap, "subscribe": topic, **options}
    return spark.read.format("millbeck").options(**given)


def run_once(spark: SparkSession, log: LiveLog, topic: str, checkpoint: Path, table: str, **options: str) -> Any:
    """One AvailableNow run of a query that adds to a table of files."""
    given = {"kafka.bootstrap.servers": log.bootstrap, "subscribe": topic, "startingOffsets": "earliest", **options}
    query = (
        spark.readStream.format("millbeck")
        .options(**given)
        .load()
        .writeStream.format("parquet")
        .option("path", table)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def test_a_batch_holds_every_record(spark: SparkSession, log: LiveLog, make_topic: MakeTopic) -> None:
    topic = make_topic(2)
    log.put(topic, records(400))
    frame: DataFrame = reading(spark, log, topic, includeHeaders="true", minPartitions="5").load()
    assert frame.rdd.getNumPartitions() >= 5
    found = sorted(
        (
            row.partition,
            row.offset,
            round(row.timestamp.timestamp() * 1000),
            None if row.key is None else bytes(row.key),
            None if row.value is None else bytes(row.value),
            tuple((header.key, None if header.value is None else bytes(header.value)) for header in row.headers or ()),
        )
        for row in frame.collect()
    )
    assert found == [
        (partition, record.offset, record.timestamp, record.key, record.value, record.headers)
        for partition, record in log.read(topic)
    ]
    assert len(found) == 400


def test_a_part_of_the_log(spark: SparkSession, log: LiveLog, make_topic: MakeTopic) -> None:
    topic = make_topic(1)
    log.put(topic, records(100))
    offsets = '{"%s":{"0":%d}}'
    part = reading(spark, log, topic, startingOffsets=offsets % (topic, 10), endingOffsets=offsets % (topic, 30)).load()
    assert sorted(row.offset for row in part.select("offset").collect()) == list(range(10, 30))
    by_time = reading(spark, log, topic, startingTimestamp="1700000000090", endingTimestamp="1700000000095").load()
    assert sorted(row.offset for row in by_time.select("offset").collect()) == list(range(90, 95))


def test_a_stream_goes_on_after_a_restart(
    spark: SparkSession, log: LiveLog, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(2)
    table = str(tmp_path / "table")
    log.put(topic, records(300))
    first = run_once(spark, log, topic, tmp_path / "checkpoint", table, maxOffsetsPerTrigger="200")
    assert len([progress for progress in first.recentProgress if progress["numInputRows"]]) == 2
    log.put(topic, records(50, first=300))
    run_once(spark, log, topic, tmp_path / "checkpoint", table)
    found = sorted((row.partition, row.offset) for row in spark.read.parquet(table).collect())
    assert found == [(partition, record.offset) for partition, record in log.read(topic)]
    assert len(found) == 350


def test_offsets_gone_and_a_topic_created_anew(
    spark: SparkSession, log: LiveLog, make_topic: MakeTopic, tmp_path: Path
) -> None:
    topic = make_topic(1)
    table = str(tmp_path / "table")
    log.put(topic, records(20))
    run_once(spark, log, topic, tmp_path / "checkpoint", table)
    log.put(topic, records(20, first=20))
    log.delete_records(topic, 30)
    with pytest.raises(Exception, match="begins at offset 30 now; offsets 20 to 29 were deleted before they were read"):
        run_once(spark, log, topic, tmp_path / "checkpoint", table)
    run_once(spark, log, topic, tmp_path / "checkpoint", table, failOnDataLoss="false")
    assert sorted(row.offset for row in spark.read.parquet(table).collect()) == [*range(20), *range(30, 40)]
    log.delete(topic)
    log.create(topic)
    log.put(topic, records(60))
    with pytest.raises(Exception, match=f"topic {topic} was deleted and created again"):
        run_once(spark, log, topic, tmp_path / "checkpoint", table)


def test_errors_a_new_user_meets(spark: SparkSession, log: LiveLog) -> None:
    with pytest.raises(Exception, match=rf"there is no topic oders at {log.bootstrap}"):
        reading(spark, log, "oders").load().count()
    nowhere = reading(spark, log, "orders", **{"kafka.bootstrap.servers": "127.0.0.1:1"})
    nowhere = nowhere.option("kafka.default.api.timeout.ms", "1500")
    with pytest.raises(Exception, match=r"no broker answers at 127\.0\.0\.1:1.*Check that it runs"):
        nowhere.load().count()
    with pytest.raises(Exception, match="one of the options subscribe, subscribePattern and assign"):
        spark.read.format("millbeck").option("kafka.bootstrap.servers", log.bootstrap).load().count()
