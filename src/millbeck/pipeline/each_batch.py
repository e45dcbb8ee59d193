"""Needs pyspark: write each batch of a streaming query to the log, for output modes that Spark does not support with
Python sinks.

    totals.writeStream.outputMode("update").foreachBatch(to_log(options)).option("checkpointLocation", …).start()

Spark refuses update mode for every sink written in Python. With `foreachBatch` the rows of a batch are those that
changed, as in Spark's Kafka sink. ``options`` are those of ``format("millbeck")``. With ``delivery=exactly_once`` each
batch is one transaction here, too, and a repeated batch is recognised; the options then name a
``kafka.transactional.id``, or the query's ``checkpointLocation``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import DataFrame

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.log_partitions import to_log_partitions
from millbeck.pipeline.sink_options import parse_sink_options

TASKS: Final = 8
"""The number of tasks that write rows with a column ``partition``."""


def to_log(options: Mapping[str, str], *, partitions: int | None = None) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch`; raises `InvalidOption`.

    ``partitions`` is the partition count of the topic, for exactly-once delivery of rows without a column of that name.
    """
    parsed = parse_sink_options(options)
    kept = {**options, "eachBatch": "true"}

    def write(batch: DataFrame, number: int) -> None:
        rows = batch
        if parsed.is_exactly_once:
            if partitions is None and "partition" not in batch.columns:
                raise InvalidOption("delivery=exactly_once needs the topic's partition count: to_log(…, partitions=6)")
            rows = to_log_partitions(batch, partitions=partitions or TASKS)
        rows.write.format("millbeck").options(**kept).mode("append").save()

    return write
