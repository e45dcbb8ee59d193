"""Spark writes to a node: every row arrives, where its columns and its key say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from millbeck.records.partitioning import partition_for_key

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog

MakeTopic = Callable[..., str]


def test_rows_arrive_where_they_belong(spark: SparkSession, log: LiveLog, make_topic: MakeTopic) -> None:
    one, other = make_topic(3), make_topic(2)
    rows = [
        (
            None if number % 5 == 0 else f"k{number}",
            None if number % 7 == 0 else f"v{number}",
            one if number % 2 else other,
            1 if number % 11 == 0 else None,
            [("h", bytearray(b"%d" % number)), ("n", None)] if number % 3 == 0 else None,
        )
        for number in range(500)
    ]
    schema = "key string, value string, topic string, partition int, headers array<struct<key:string,value:binary>>"
    frame = spark.createDataFrame(rows, schema).repartition(3)
    frame.write.format("millbeck").option("kafka.bootstrap.servers", log.bootstrap).mode("append").save()
    written = []
    for topic in (one, other):
        for partition, record in log.read(topic):
            key = None if record.key is None else record.key.decode()
            value = None if record.value is None else record.value.decode()
            headers = [(name, part) for name, part in record.headers] or None
            written.append((key, value, topic, headers))
            if key is not None and int(key[1:]) % 11:
                assert partition == partition_for_key(key.encode(), 3 if topic == one else 2)
            elif key is not None:
                assert partition == 1
    expected = [
        (key, value, topic, None if headers is None else [(name, part and bytes(part)) for name, part in headers])
        for key, value, topic, _, headers in rows
    ]
    assert sorted(map(repr, written)) == sorted(map(repr, expected))


def test_a_stream_from_topic_to_topic(spark: SparkSession, log: LiveLog, make_topic: MakeTopic, tmp_path: Path) -> None:
    source, target = make_topic(2), make_topic(2)
    log.put(source, [{"value": b"%d" % number, "key": b"k%d" % number} for number in range(1000)])
    query = (
        spark.readStream.format("millbeck")
        .option("kafka.bootstrap.servers", log.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .load()
        .select("key", "value")
        .writeStream.format("millbeck")
        .option("kafka.bootstrap.servers", log.bootstrap)
        .option("kafka.compression.type", "lz4")
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(log.values(target), key=lambda value: int(value or b"")) == [b"%d" % number for number in range(1000)]


def test_rows_that_cannot_be_written(spark: SparkSession, log: LiveLog, make_topic: MakeTopic) -> None:
    numbers = spark.range(3)
    writer = numbers.selectExpr("id as value").write.format("millbeck").option("kafka.bootstrap.servers", log.bootstrap)
    with pytest.raises(Exception, match='column "value" must be binary or string, not bigint'):
        writer.option("topic", make_topic()).mode("append").save()
    texts = numbers.selectExpr("string(id) as value", "9 as partition")
    writer = texts.write.format("millbeck").option("kafka.bootstrap.servers", log.bootstrap)
    with pytest.raises(Exception, match=r"a row goes to partition 9, but topic .* has 1 partitions"):
        writer.option("topic", make_topic()).mode("append").save()
    with pytest.raises(Exception, match="there is no topic nowhere"):
        writer.option("topic", "nowhere").option("kafka.max.block.ms", "1500").mode("append").save()
