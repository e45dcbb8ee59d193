"""Needs pyspark: global tables: a whole topic as a table for every task, joined by any column.

With keys that are written in one way only, as text, numbers or bytes, each machine has a copy of the topic's rows, and
a batch reads what has changed (`table_copy`); values are decoded when they are looked up. With keys in JSON, Avro or
Protobuf, where different bytes may be equal keys, and in real-time mode, the whole topic is read and broadcast for each
batch.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BinaryType, DataType, IntegerType, LongType, StructField, StructType

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.formats.columns import PROBLEM, VALUE
from millbeck.pipeline.source_options import SourceOptions
from millbeck.pipeline.topology.paths import Keep, LookUp, Records, Select
from millbeck.pipeline.topology.records import ColumnRecord, JoinFunction, column, replacing
from millbeck.pipeline.topology.serdes import Serde
from millbeck.pipeline.topology.streams import Stream, same_type

if TYPE_CHECKING:
    from millbeck.pipeline.topology.topology import Topology

COPIED_KEYS: Final = ("string", "raw", "long", "integer")
"""The serdes whose keys have one form only."""

_FOUND: Final = StructType(
    [StructField("value", BinaryType()), StructField("partition", IntegerType()), StructField("offset", LongType())]
)


class TableLookup(Protocol):
    key_type: DataType

    def joined(self, records: Records, wanted: Column, joiner: JoinFunction, *, is_left: bool) -> Records:
        """Each record with the value that ``joiner`` makes of it and of the row with the key ``wanted``."""


class GlobalTable:
    def __init__(self, topology: Topology, rows: TableLookup) -> None:
        self.topology = topology
        self._rows = rows

    def joined_by(self, stream: Stream, joiner: JoinFunction, how: str, options: Mapping[str, Any]) -> Stream:
        if how == "full_outer" or set(options) - {"key"}:
            raise TopologyError("a join with a global table is an inner or a left one and takes key= alone")
        key = options.get("key")
        wanted = column(key(ColumnRecord.of_row()), "key") if key is not None else sf.col("key")
        rows = stream.records.paths[0].frame.select(wanted.alias("wanted"))
        same_type(rows.schema["wanted"].dataType, self._rows.key_type, "a stream with a global table")
        joined = self._rows.joined(stream.records, wanted, joiner, is_left=how != "inner")
        return Stream(self.topology, joined)


class WholeTable:
    """The rows of a frame, which is read anew for each batch."""

    def __init__(self, rows: DataFrame) -> None:
        self.key_type = rows.schema["key"].dataType
        self._found = rows.select(sf.col("key").alias("found_key"), sf.col("value").alias("found"))

    def joined(self, records: Records, wanted: Column, joiner: JoinFunction, *, is_left: bool) -> Records:
        value = column(joiner(sf.col("value"), sf.col("found")), "join")
        return records.then(lambda frame: LookUp(self._found, wanted, replacing(frame, value=value), is_left))


class CopiedTable:
    """The rows of a machine's copy. ``is_strict`` fails the query for a row that cannot be decoded; otherwise it counts
    as missing. ``empty`` is a frame with the columns key and value of the topic.
    """

    def __init__(
        self,
        empty: DataFrame,
        key: Serde,
        value: Serde,
        find: Callable[[Column], Column],
        *,
        topic: str,
        is_strict: bool,
    ) -> None:
        self.key_type = empty.select(key.decode(sf.col("key")).alias("key")).schema["key"].dataType
        self._key = key
        self._value = value
        self._find = find
        self._topic = topic
        self._is_strict = is_strict

    def joined(self, records: Records, wanted: Column, joiner: JoinFunction, *, is_left: bool) -> Records:
        found = self._find(self._key.encode(wanted).cast("binary"))
        row = sf.col("row")
        read = self._value.read(row["value"])
        joined = (
            records.then(lambda frame: Select({**replacing(frame), "row": found}, takes_null=True))
            .then(lambda frame: Select({**replacing(frame), "row": row, "read": read}, takes_null=True))
            .then(lambda frame: Select({**replacing(frame), "found": self._checked()}, takes_null=True))
        )
        if not is_left:
            joined = joined.then(lambda frame: Keep(sf.col("found").isNotNull()))
        value = column(joiner(sf.col("value"), sf.col("found")), "join")
        return joined.then(lambda frame: Select(replacing(frame, value=value)))

    def _checked(self) -> Column:
        read, row = sf.col("read"), sf.col("row")
        if not self._is_strict:
            return read[VALUE]
        where = sf.format_string("%s-%d at offset %d", sf.lit(self._topic), row["partition"], row["offset"])
        complaint = sf.raise_error(sf.concat(where, sf.lit(": the value is "), read[PROBLEM]))
        # One of the branches has a type, and an error has none.
        return sf.when(read[PROBLEM].isNull(), read[VALUE]).otherwise(complaint)


def last_rows(records: DataFrame) -> DataFrame:
    """The rows of a table, from all records of its topic: the last value of each key in the log, without deleted keys.

    Timestamps are ignored within a partition: the record or tombstone with the highest offset is the last one. Only if
    a key is in several partitions, which no partitioner by key causes, the one with the newest timestamp is used.
    """
    by_partition = (
        records.where("key IS NOT NULL")
        .groupBy("key", sf.col("order")["partition"].alias("partition"))
        .agg(sf.max_by(sf.struct("value", "timestamp"), sf.col("order")["offset"]).alias("last"))
    )
    newest = sf.max_by(sf.col("last")["value"], sf.struct(sf.col("last")["timestamp"], "partition"))
    return by_partition.groupBy("key").agg(newest.alias("value")).where("value IS NOT NULL")


def finder(
    options: SourceOptions, application: str, skipped: Collection[tuple[int, int]] = ()
) -> Callable[[Column], Column]:
    """A function of a column of keys that returns the rows found in the machine's copy, as value, partition and offset,
    null where there is none, or where the last record of a key is to be skipped, by its partition and offset.
    """
    from pyspark.sql.pandas.functions import arrow_udf
    from pyspark.sql.pandas.types import to_arrow_type

    made: Any = arrow_udf  # whose annotations know fewer types than it takes

    def find(keys: pa.Array) -> pa.Array:
        from millbeck.pipeline.table_copy import opened

        listed = keys.to_pylist()
        wanted = {key for key in listed if key is not None}
        rows = opened(options, application).rows_of(wanted, _batch()) if wanted else {}
        found = [rows.get(key) for key in listed]
        known = [None if row is None or (row.partition, row.offset) in skipped else row._asdict() for row in found]
        return pa.array(known, type=to_arrow_type(_FOUND))

    # Said to be so for Spark, which would otherwise look up again wherever a later step asks for the row.
    finding = made(find, _FOUND).asNondeterministic()
    return lambda wanted: finding(wanted)


def _batch() -> str | None:
    """A name of the batch that this task is part of; None if there is none."""
    context = TaskContext.get()
    if context is None:
        return None
    # Undocumented properties: without them each column of keys is a batch of its own.
    run, batch = (context.getLocalProperty(name) for name in ("spark.jobGroup.id", "streaming.sql.batchId"))
    return None if run is None or batch is None else f"{run} {batch}"
