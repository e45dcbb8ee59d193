"""Needs pyspark: a topology under construction, and the query it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DataType

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.formats.columns import PROBLEM, VALUE
from millbeck.pipeline.log_partitions import to_log_partitions, with_log_partition
from millbeck.pipeline.log_view import LogView
from millbeck.pipeline.sink_options import EXACTLY_ONCE
from millbeck.pipeline.source_options import parse_source_options
from millbeck.pipeline.topology.changelogs import changelog_of, make_changelogs
from millbeck.pipeline.topology.fitting import fitted
from millbeck.pipeline.topology.grouped import GroupedStream, GroupedTable
from millbeck.pipeline.topology.outline import TopologyDescription
from millbeck.pipeline.topology.records import COLUMNS, ColumnRecord, RecordFunction, unordered
from millbeck.pipeline.topology.serdes import KEY_PART, VALUE_PART, Serde, raw, serde_for, string
from millbeck.pipeline.topology.stateful import ROCKSDB
from millbeck.pipeline.topology.streams import Stream
from millbeck.pipeline.topology.tables import GlobalTable, Table, last_rows
from millbeck.pipeline.topology.windows import Length, length_ms

DEAD_LETTER_HEADERS: Final = ("topic", "partition", "offset", "error")
"""Headers of bad records, each with the prefix ``__millbeck.error.``: the record's origin and the problem."""


class Topology:
    """Streams and tables of one application; all outputs are written by one query.

    ``bad_records`` is ``"fail"``, or the name of a topic for records that their serde cannot decode, with headers that
    give the reason.
    """

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        *,
        bootstrap_servers: str,
        bad_records: str = "fail",
        lateness: Length = "0 seconds",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.spark = spark
        self.outline = TopologyDescription()
        self.lateness_ms = length_ms(lateness)
        """The time for which event-time processors wait for late records."""
        self._bad_records = bad_records
        self._options = {"kafka.bootstrap.servers": bootstrap_servers, **(options or {})}
        self._outputs: list[tuple[str, DataFrame]] = []
        """The frames of rows to write, by topic."""
        self._sources: list[str] = []
        self._changelogs: list[str] = []

    # Sources

    def stream(
        self,
        topics: str | list[str],
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        timestamp: Callable[[ColumnRecord], Column] | None = None,
        headers: bool = False,
        starting: str = "earliest",
    ) -> Stream:
        """A stream of these topics; keys are text and values bytes unless serdes are given.

        ``timestamp`` returns the event time; the default is the record's timestamp.
        """
        names = [topics] if isinstance(topics, str) else topics
        key, value = _bound(key or string(), value or raw(), names[0])
        raw_records = (
            self.spark.readStream.format("millbeck")
            .options(**self._options, startingOffsets=starting, includeHeaders=str(headers).lower())
            .option("subscribe", ",".join(names))
            .load()
        )
        self.outline.sources.extend(names)
        self._sources.extend(names)
        return Stream(self, self._decoded(raw_records, key, value, timestamp))

    def table(
        self, topic: str, *, key: Serde | None = None, value: Serde | None = None, store: str | None = None
    ) -> Table:
        """A topic as a table: the last value of each key in its partition, whatever the timestamps; null deletes it."""
        return Table(self, self.stream(topic, key=key, value=value).frame, name=store)

    def global_table(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> GlobalTable:
        """A whole topic as a table available to every task, by the rule of `table`; for tables that fit into memory."""
        records = self.spark.read.format("millbeck").options(**self._options).option("subscribe", topic).load()
        self.outline.sources.append(f"{topic} (whole, for each batch)")
        decoded = self._decoded(records, *_bound(key or string(), value or raw(), topic), None)
        return GlobalTable(self, last_rows(decoded))

    def stream_of(self, frame: DataFrame) -> Stream:
        """A stream of any streaming DataFrame with the columns key, value and timestamp."""
        if "order" not in frame.columns:
            frame = frame.withColumn("order", unordered())
        missing = [name for name in COLUMNS if name not in frame.columns]
        if missing:
            raise TopologyError(f"a stream needs the columns key, value and timestamp; missing: {', '.join(missing)}")
        return Stream(self, frame.select(*COLUMNS))

    def table_of(self, frame: DataFrame, *, name: str | None = None, is_kept: bool = False) -> Table:
        return Table(self, frame, name=name, is_kept=is_kept)

    def grouped(self, frame: DataFrame) -> GroupedStream:
        return GroupedStream(self, frame)

    def grouped_table(self, table: Table, function: RecordFunction) -> GroupedTable:
        return GroupedTable(table, function)

    def _decoded(
        self,
        records: DataFrame,
        key: Serde,
        value: Serde,
        timestamp: Callable[[ColumnRecord], Column] | None,
    ) -> DataFrame:
        decoded = records.select(
            key.read(sf.col("key")).alias("key"),
            value.read(sf.col("value")).alias("value"),
            "timestamp",
            sf.struct("partition", "offset", sf.lit(0).alias("step")).alias("order"),
            sf.struct("topic", "partition", "offset", "key", "value").alias("raw"),
            *(["headers"] if "headers" in records.columns else []),
        )
        problems = {part: sf.col(part)[PROBLEM] for part in ("key", "value")}
        checked = decoded.select(
            sf.col("key")[VALUE].alias("key"),
            sf.col("value")[VALUE].alias("value"),
            *decoded.columns[2:],
            sf.coalesce(*[sf.concat(sf.lit(f"the {part} is "), said) for part, said in problems.items()]).alias(
                "problem"
            ),
        )
        good = self._without_bad(checked)
        if timestamp is not None:
            read = timestamp(ColumnRecord.of_row()).cast("timestamp")
            good = good.withColumn("timestamp", sf.coalesce(read, sf.col("timestamp")))
        return good.select(*COLUMNS, *(["headers"] if "headers" in records.columns else []))

    def _without_bad(self, checked: DataFrame) -> DataFrame:
        where = sf.format_string(
            "%s-%d at offset %d", sf.col("raw")["topic"], sf.col("raw")["partition"], sf.col("raw")["offset"]
        )
        if self._bad_records == "fail":
            complaint = sf.raise_error(sf.concat(where, sf.lit(": "), sf.col("problem")))
            return checked.where(sf.when(sf.col("problem").isNull(), sf.lit(True)).otherwise(complaint.cast("boolean")))
        if checked.isStreaming:
            bad = checked.where(sf.col("problem").isNotNull())
            parts = {name: sf.col("raw")[name].cast("string") for name in ("topic", "partition", "offset")}
            parts["error"] = sf.col("problem")
            headers = sf.array(
                *[
                    sf.struct(
                        sf.lit(f"__millbeck.error.{name}").alias("key"), parts[name].cast("binary").alias("value")
                    )
                    for name in DEAD_LETTER_HEADERS
                ]
            )
            rows = bad.select(
                sf.lit(self._bad_records).alias("topic"),
                sf.col("raw")["key"].alias("key"),
                sf.col("raw")["value"].alias("value"),
                headers.alias("headers"),
            )
            self._outputs.append((self._bad_records, rows))
        return checked.where(sf.col("problem").isNull())

    # Outputs

    def write(self, frame: DataFrame, topic: str, *, key: Serde | None, value: Serde | None) -> None:
        kinds = {part: frame.schema[part].dataType for part in ("key", "value")}
        serdes = _bound(key or serde_for(kinds["key"]), value or serde_for(kinds["value"]), topic)
        written = [
            serde.encode(_fitted(serde, kind, part, topic)).cast("binary").alias(part)
            for serde, (part, kind) in zip(serdes, kinds.items(), strict=True)
        ]
        headers = sf.col("headers") if "headers" in frame.columns else sf.lit(None)
        rows = frame.select(
            sf.lit(topic).alias("topic"),
            *written,
            headers.cast("array<struct<key:string,value:binary>>").alias("headers"),
        )
        self._outputs.append((topic, rows))
        self.outline.outputs.append(topic)

    def publish(self, frame: DataFrame, store: str, *, key: Serde | None, value: Serde | None) -> None:
        """Write the changes of a store to its changelog."""
        topic = changelog_of(self.name, store)
        if topic in self._changelogs:
            raise TopologyError(f"the store {store!r} is published twice")
        self.write(frame, topic, key=key, value=value)
        self._changelogs.append(topic)
        self.outline.outputs[-1] = f"{topic} (compacted: the changes of the store {store})"

    def outgoing(self, partition_counts: Mapping[str, int] | None = None) -> DataFrame:
        """All rows that the topology writes, in the format of the sink.

        With partition counts each row also has its partition, and one task has all rows of a partition, as exactly-once
        delivery requires.
        """
        if not self.outline.outputs:
            raise TopologyError(f"the topology {self.name!r} has no output: end a stream or a table with to(topic)")
        frames = [
            frame if partition_counts is None else with_log_partition(frame, partition_counts[topic])
            for topic, frame in self._outputs
        ]
        rows = frames[0]
        for more in frames[1:]:
            rows = rows.unionByName(more)
        if partition_counts is None:
            return rows
        return to_log_partitions(rows, partitions=max(partition_counts.values()))

    def _make_changelogs(self) -> None:
        """Create missing changelogs, with as many partitions as the largest source topic."""
        if self._changelogs:
            count = max(self._partition_counts(self._sources).values(), default=1)
            options = parse_source_options(
                {**self._options, "subscribe": ",".join(self._changelogs)}, is_streaming=False
            )
            make_changelogs(options.settings, dict.fromkeys(self._changelogs, count))

    def _partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        names = ",".join(sorted(set(topics)))
        if not names:
            return {}
        view = LogView(parse_source_options({**self._options, "subscribe": names}, is_streaming=False))
        try:
            return {name: len(topic.partitions) for name, topic in view.topics().items()}
        finally:
            view.close()

    def start(
        self,
        checkpoint: str,
        *,
        delivery: str = EXACTLY_ONCE,
        trigger: Mapping[str, Any] | None = None,
        options: Mapping[str, str] | None = None,
    ) -> StreamingQuery:
        """Start the query; ``trigger`` holds Spark's trigger arguments, like ``{"processingTime": "1 second"}``."""
        self.spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
        self._make_changelogs()
        counts = self._partition_counts(topic for topic, _ in self._outputs) if delivery == EXACTLY_ONCE else None
        writer = (
            self.outgoing(counts)
            .writeStream.format("millbeck")
            .queryName(self.name)
            .outputMode("append")
            .options(**self._options, delivery=delivery, checkpointLocation=checkpoint, **(options or {}))
        )
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()


def _bound(key: Serde, value: Serde, topic: str) -> tuple[Serde, Serde]:
    return key.bound_to(topic, KEY_PART), value.bound_to(topic, VALUE_PART)


def _fitted(serde: Serde, held: DataType, part: str, topic: str) -> Column:
    column = sf.col(part)
    return column if serde.kind is None else fitted(column, held, serde.kind, f"the {part} for {topic}")
