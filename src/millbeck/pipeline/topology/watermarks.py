"""Needs pyspark: watermarks that go on while sources are idle.

A watermark is the greatest event time of the rows that pass it. A source with the option ``idleAfter`` therefore has a
marker row from time to time while it has no records: a row with a timestamp and no topic. Marker rows pass no step of a
stream; they are a path beside it, from the same root (`paths`), which joins the records just before the watermark and
ends just after it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from millbeck.pipeline.topology.checkpoints import node_kinds
from millbeck.pipeline.topology.paths import Keep, Path, Records, Select, united
from millbeck.pipeline.topology.records import COLUMNS
from millbeck.pipeline.topology.windows import interval

_MARKER_PARTITION: Final = -2
"""What marker rows have for a partition of the log."""


def without_markers(read: Records) -> Records:
    """The records of a source that has marker rows; these become paths of their own. The rows have a column raw."""
    topic = sf.col("raw")["topic"]
    order = sf.struct(
        sf.lit(_MARKER_PARTITION).alias("partition"), sf.lit(0).cast("bigint").alias("offset"), sf.lit(0).alias("step")
    )
    marked = read.then(lambda frame: Keep(topic.isNull()))
    markers = marked.then(lambda frame: Select({"timestamp": sf.col("timestamp"), "order": order})).paths
    kept = read.then(lambda frame: Keep(topic.isNotNull()))
    return Records([Path(path.frames, path.steps, markers) for path in kept.paths])


def with_watermark(records: Records, delay_ms: int) -> DataFrame:
    """The records with a watermark on their column timestamp. Those that are the results of an operator with a
    watermark have that one: Spark does not allow a second one behind it.
    """
    behind = [path for path in records.paths if is_behind_watermark(path.frame)]
    if not behind:
        return _marked(records, delay_ms)
    columns = [sf.col(name) for name in COLUMNS]
    rows = united(behind).select(*columns)
    fresh = [path for path in records.paths if path not in behind]
    return rows.unionByName(_marked(Records(fresh), delay_ms).select(*columns)) if fresh else rows


def is_behind_watermark(frame: DataFrame) -> bool:
    """Whether the frame's plan has a watermark; False with Spark Connect, which does not provide the plan."""
    return getattr(frame, "_jdf", None) is not None and any(kind == "EventTimeWatermark" for kind in node_kinds(frame))


def _marked(records: Records, delay_ms: int) -> DataFrame:
    if not records.markers:
        return records.frame.withWatermark("timestamp", interval(delay_ms))
    held = records.paths[0].frame.schema
    columns = {name: sf.col(name) for name in COLUMNS}
    empty = {part: sf.lit(None).cast(held[part].dataType) for part in ("key", "value")}
    paths = records.then(lambda frame: Select(columns)).paths
    markers = [marker.then(Select({**columns, **empty})) for marker in records.markers]
    rows = united([*paths, *markers]).withWatermark("timestamp", interval(delay_ms))
    # Spark would move a deterministic condition to before the watermark, which would then see no markers. This one is
    # always true, and Spark does not know it.
    partition = sf.col("order")["partition"]
    is_any = sf.rand() >= sf.least(partition, sf.lit(0))
    return rows.where(sf.when(is_any, partition != _MARKER_PARTITION))
