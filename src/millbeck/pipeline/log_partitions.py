"""Needs pyspark: rows brought together by the log partition they go to, for a sink that writes exactly once.

    rows = to_log_partitions(frame, partitions=6)
    rows.writeStream.format("millbeck").option("delivery", "exactly_once")...

Every row gets the column ``partition`` that its key would choose anyway, and a shuffle puts the rows of one log
partition into one task; a task may have several. Keys are not looked at where the frame has the column already.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType


def to_log_partitions(frame: DataFrame, *, partitions: int, tasks: int | None = None) -> DataFrame:
    """The frame with a column ``partition``, shuffled by it into ``tasks`` (at most as many as partitions)."""
    placed = frame if "partition" in frame.columns else with_log_partition(frame, partitions)
    return placed.repartition(min(tasks or partitions, partitions), "partition")


def with_log_partition(frame: DataFrame, partitions: int) -> DataFrame:
    """The frame with the column ``partition`` that its keys choose in a topic with so many; nothing is shuffled."""
    schema = StructType([*frame.schema.fields, StructField("partition", IntegerType())])

    def place(batches: Iterator[Any]) -> Iterator[Any]:
        from millbeck.pipeline.outgoing import with_partitions

        for turn, batch in enumerate(batches):
            yield with_partitions(batch, partitions, turn)

    return frame.mapInArrow(place, schema)
