"""A query that is run again, from any point, writes every batch once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from millbeck.pipeline.exactly_once import begin, sweep
from millbeck.pipeline.sink_options import parse_sink_options

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.spark.live_log import LiveLog

MakeTopic = Callable[..., str]


def copy(
    spark: SparkSession,
    log: LiveLog,
    source: str,
    target: str,
    place: Path,
    *,
    shuffles: bool = True,
    transactional_id: str | None = None,
) -> Any:
    from millbeck.pipeline.log_partitions import to_log_partitions

    rows = (
        spark.readStream.format("millbeck")
        .option("kafka.bootstrap.servers", log.bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "300")
        .load()
        .select("key", "value")
    )
    name = {} if transactional_id is None else {"kafka.transactional.id": transactional_id}
    query = (
        (to_log_partitions(rows, partitions=2) if shuffles else rows)
        .writeStream.format("millbeck")
        .option("kafka.bootstrap.servers", log.bootstrap)
        .option("topic", target)
        .option("delivery", "exactly_once")
        .option("checkpointLocation", str(place))
        .options(**name)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return query


def forget_last_commit(place: Path) -> int:
    """As if the driver had died after the commit of the last batch, before Spark noted it; the batch's number."""
    last = max(int(path.name) for path in (place / "commits").iterdir() if path.name.isdigit())
    for path in (place / "commits").glob(f"*{last}*"):
        path.unlink()
    return last


def test_every_batch_counts_once(spark: SparkSession, log: LiveLog, make_topic: MakeTopic, tmp_path: Path) -> None:
    source, target = make_topic(2), make_topic(2)
    expected = [b"%d" % number for number in range(600)]
    log.put(source, [{"value": value, "key": value} for value in expected])
    place = tmp_path / "checkpoint"
    copy(spark, log, source, target, place)
    assert sorted(log.values(target)) == sorted(expected)
    last = forget_last_commit(place)
    copy(spark, log, source, target, place)
    assert sorted(log.values(target)) == sorted(expected)
    # What an attempt wrote and never committed is seen by nobody.
    options = parse_sink_options(
        {
            "kafka.bootstrap.servers": log.bootstrap,
            "topic": target,
            "delivery": "exactly_once",
            "checkpointLocation": str(place),
        }
    )
    left = begin(options)
    assert set(left.noted.values()) == {last}
    from millbeck.pipeline.row_writer import RowWriter

    outgoing = RowWriter(options, ticket=left.ticket)
    import pyarrow as pa

    outgoing.write(pa.RecordBatch.from_pydict({"value": ["left behind"]}))
    outgoing.finish()
    outgoing.close()
    assert options.transactional_id is not None
    sweep(options.settings, [options.transactional_id])
    assert sorted(log.values(target)) == sorted(expected)
    assert b"left behind" in log.values(target, "read_uncommitted")
    more = [b"%d" % number for number in range(600, 700)]
    log.put(source, [{"value": value, "key": value} for value in more])
    copy(spark, log, source, target, place)
    assert sorted(log.values(target)) == sorted(expected + more)


def test_queries_that_take_turns_under_one_transactional_id_repeat_nothing(
    spark: SparkSession, log: LiveLog, make_topic: MakeTopic, tmp_path: Path
) -> None:
    target = make_topic(1)
    sources = [make_topic(1), make_topic(1)]
    for source in sources:
        log.put(source, [{"value": f"{source} {number}".encode()} for number in range(20)])
    for source in sources:
        copy(spark, log, source, target, tmp_path / source, shuffles=False, transactional_id="shared")
    first = sources[0]
    forget_last_commit(tmp_path / first)
    copy(spark, log, first, target, tmp_path / first, shuffles=False, transactional_id="shared")
    assert sorted(log.values(target)) == sorted(f"{each} {number}".encode() for each in sources for number in range(20))


def test_two_tasks_for_one_partition_are_refused(
    spark: SparkSession, log: LiveLog, make_topic: MakeTopic, tmp_path: Path
) -> None:
    source, target = make_topic(2), make_topic(1)
    log.put(source, [{"value": b"%d" % number, "key": b"%d" % number} for number in range(50)])
    with pytest.raises(Exception, match="all rows of a log partition must be written by one task"):
        copy(spark, log, source, target, tmp_path / "checkpoint", shuffles=False)
    assert log.values(target) == []
