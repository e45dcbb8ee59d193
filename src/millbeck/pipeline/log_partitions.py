"""Needs pyspark: shuffle rows by their log partition, as required by an exactly-once sink.

    rows = to_log_partitions(frame, partitions=6)
    rows.writeStream.format("millbeck").option("delivery", "exactly_once")...

Every row gets a column ``partition``, chosen by its key as the producer would, and a shuffle puts all rows of a log
partition into one task; a task may have several partitions. If the frame already has the column, it is used instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType


def to_log_partitions(frame: DataFrame, *, partitions: int, tasks: int | None = None) -> DataFrame:
    """The frame with a column ``partition``, shuffled by it into ``tasks`` (at most as many as partitions)."""
    placed = frame if "partition" in frame.columns else with_log_partition(frame, partitions)
    return placed.repartition(min(tasks or partitions, partitions), "partition")


def with_log_partition(frame: DataFrame, partitions: int | Mapping[str, int]) -> DataFrame:
    """The frame with the column ``partition``, chosen by key for this partition count; nothing is shuffled.

    Rows with a column ``topic`` may have counts by topic.
    """
    schema = StructType([*frame.schema.fields, StructField("partition", IntegerType())])

    def place(batches: Iterator[Any]) -> Iterator[Any]:
        from millbeck.pipeline.row_writer import with_partitions

        for turn, batch in enumerate(batches):
            yield with_partitions(batch, partitions, turn)

    return frame.mapInArrow(place, schema)
