"""Spark's own ``format("kafka")`` reads and writes topics, batch and streaming, as ``format("millbeck")`` does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tools import peers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from millbeck.testing.broker_process import Broker

pytestmark = [
    pytest.mark.skipif(os.environ.get("INTEROP_SYSTEM", "millbeck") != "millbeck", reason="starts a node of its own"),
    pytest.mark.timeout(300),
]

ROWS = 5000


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    from millbeck.pipeline.session import spark_session

    try:
        folder = peers.install("spark-connector")
    except peers.PeerUnavailable as missing:
        if os.environ.get("INTEROP_ALLOW_MISSING") == "1":
            pytest.skip(str(missing))
        raise
    jars = ",".join(str(jar) for jar in sorted(folder.glob("*.jar")))
    settings = {"spark.jars": jars, "spark.ui.enabled": "false", "spark.log.level": "ERROR"}
    session = spark_session("interop", master="local[2]", settings=settings)
    yield session
    session.stop()


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    from millbeck.testing.broker_process import broker

    with broker({"num.partitions": "3"}) as running:
        yield running


def rows(spark: SparkSession) -> DataFrame:
    return spark.range(ROWS).selectExpr(
        "if(id % 5 = 0, null, concat('k', id)) as key",
        "if(id % 7 = 0, null, concat('v', id)) as value",
        "if(id % 3 = 0, array(struct('h' as key, binary(string(id)) as value),"
        " struct('h' as key, cast(null as binary) as value)), null) as headers",
    )


def read(spark: SparkSession, node: Broker, by: str, topic: str) -> list[tuple[object, ...]]:
    frame = (
        spark.read.format(by)
        .option("kafka.bootstrap.servers", node.bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
    )
    return sorted(
        (tuple(repr(part) for part in row) for row in frame.collect()), key=lambda row: (row[3], int(str(row[4])))
    )


def write(spark: SparkSession, node: Broker, by: str, topic: str) -> None:
    writer = rows(spark).write.format(by).option("kafka.bootstrap.servers", node.bootstrap).option("topic", topic)
    writer.option("includeHeaders", "true").mode("append").save()


@pytest.mark.parametrize("by", ["kafka", "millbeck"])
def test_both_read_what_either_wrote(spark: SparkSession, node: Broker, by: str) -> None:
    topic = f"written-by-{by}"
    write(spark, node, by, topic)
    found = read(spark, node, "kafka", topic)
    assert len(found) == ROWS
    assert found == read(spark, node, "millbeck", topic)


def test_both_choose_the_same_partitions(spark: SparkSession, node: Broker) -> None:
    for by in ("kafka", "millbeck"):
        write(spark, node, by, f"placed-by-{by}")
    placed = [
        sorted((row[0], row[3]) for row in read(spark, node, "kafka", f"placed-by-{by}") if row[0] != "None")
        for by in ("kafka", "millbeck")
    ]
    assert placed[0] == placed[1]


def test_a_stream_of_theirs(spark: SparkSession, node: Broker, tmp_path: Path) -> None:
    write(spark, node, "kafka", "stream-in")
    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", node.bootstrap)
        .option("subscribe", "stream-in")
        .option("startingOffsets", "earliest")
        .option("includeHeaders", "true")
        .option("maxOffsetsPerTrigger", str(ROWS // 2))
        .load()
        .select("key", "value", "headers")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", node.bootstrap)
        .option("topic", "stream-out")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    contents = [
        sorted((row[0], row[1], row[7]) for row in read(spark, node, "kafka", topic))
        for topic in ("stream-in", "stream-out")
    ]
    assert len(contents[1]) == ROWS
    assert contents[0] == contents[1]
