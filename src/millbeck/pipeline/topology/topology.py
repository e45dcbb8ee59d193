"""Needs pyspark: a topology under construction, and the query it becomes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DataType

from millbeck.pipeline.errors import CheckpointMismatch, TopologyError
from millbeck.pipeline.formats.columns import PROBLEM, VALUE
from millbeck.pipeline.log_partitions import to_log_partitions, with_log_partition
from millbeck.pipeline.log_view import LogView
from millbeck.pipeline.sink_options import EXACTLY_ONCE
from millbeck.pipeline.source_options import IDLE_AFTER, STREAM_OPTIONS, parse_source_options
from millbeck.pipeline.topology.changelogs import changelog_of, make_changelogs
from millbeck.pipeline.topology.checkpoints import (
    OffsetLog,
    aggregate_count,
    fit_sources,
    source_count,
    sources_of,
    stateful_count,
)
from millbeck.pipeline.topology.fitting import fitted
from millbeck.pipeline.topology.global_tables import (
    COPIED_KEYS,
    CopiedTable,
    GlobalTable,
    TableLookup,
    WholeTable,
    finder,
    last_rows,
)
from millbeck.pipeline.topology.grouped import GroupedStream, GroupedTable
from millbeck.pipeline.topology.outline import TopologyDescription
from millbeck.pipeline.topology.paths import Keep, Records, Select, apart, united
from millbeck.pipeline.topology.records import (
    COLUMNS,
    HEADERS,
    HEADERS_TYPE,
    ColumnRecord,
    RecordFunction,
    unordered,
    with_headers,
)
from millbeck.pipeline.topology.running_windows import FINAL, UPDATE
from millbeck.pipeline.topology.serdes import KEY_PART, VALUE_PART, Serde, raw, serde_for, string
from millbeck.pipeline.topology.stateful import ROCKSDB
from millbeck.pipeline.topology.streams import Stream
from millbeck.pipeline.topology.tables import Table
from millbeck.pipeline.topology.watermarks import without_markers
from millbeck.pipeline.topology.windows import Length, length_ms

log = logging.getLogger(__name__)


class Topology:
    """Streams and tables of one application; all outputs are written by one query.

    ``bad_records`` is ``"fail"``, or the name of a topic for records that their serde cannot decode, with headers that
    give the reason. ``late_records`` is a topic for records that came after their windows had closed; without it they
    are only counted. ``skipped`` are records to leave out, by topic, partition and offset.
    """

    is_real_time: ClassVar[bool] = False
    copies_tables: ClassVar[bool] = True
    """Whether the tasks look up rows of global tables in copies of their topics."""

    def __init__(
        self,
        name: str,
        spark: SparkSession,
        *,
        bootstrap_servers: str,
        bad_records: str = "fail",
        lateness: Length = "0 seconds",
        options: Mapping[str, str] | None = None,
        skipped: Sequence[tuple[str, int, int]] = (),
        late_records: str | None = None,
    ) -> None:
        self.name = name
        self.spark = spark
        self.outline = TopologyDescription()
        self.lateness_ms = length_ms(lateness)
        """The time for which event-time processors wait for late records."""
        self.late_records = late_records
        is_remote = getattr(spark, "_jsparkSession", None) is None
        self.default_emit = FINAL if is_remote else UPDATE
        """When windows emit results; on a Spark Connect server only final ones are possible."""
        self._bad_records = bad_records
        self._skipped = tuple(skipped)
        self._options = {"kafka.bootstrap.servers": bootstrap_servers, **(options or {})}
        self._has_markers = IDLE_AFTER.lower() in [name.lower() for name in self._options]
        self._outputs: list[tuple[tuple[str, ...], Records]] = []
        """The topics to write to, and the rows with the columns of the sink."""
        self._sources: list[str] = []
        self._tables: list[str] = []
        self._changelogs: list[str] = []

    def needs_batches(self, what: str, instead: str = "") -> None:
        """Called by operators that real-time mode does not support, where it raises `TopologyError`."""

    @property
    def sources(self) -> tuple[str, ...]:
        """The topics that are read record by record."""
        return tuple(dict.fromkeys(self._sources))

    @property
    def written(self) -> tuple[str, ...]:
        """The topics that are written, changelogs included."""
        return tuple(dict.fromkeys(name for topics, _ in self._outputs for name in topics))

    @property
    def changelogs(self) -> tuple[str, ...]:
        return tuple(self._changelogs)

    @property
    def tables(self) -> tuple[str, ...]:
        """The topics of global tables."""
        return tuple(dict.fromkeys(self._tables))

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
        raw_records = self._open_stream(names, starting=starting, headers=headers)
        self.outline.sources.extend(names)
        self._sources.extend(names)
        return Stream(self, self._decoded(raw_records, key, value, timestamp))

    def table(
        self, topic: str, *, key: Serde | None = None, value: Serde | None = None, store: str | None = None
    ) -> Table:
        """A topic as a table: the last value of each key in its partition, whatever the timestamps; null deletes it."""
        return Table(self, self.stream(topic, key=key, value=value).records, name=store)

    def global_table(self, topic: str, *, key: Serde | None = None, value: Serde | None = None) -> GlobalTable:
        """A whole topic as a table available to every task, with the last value of each key as in `table`; it must fit
        into memory.
        """
        self._tables.append(topic)
        return GlobalTable(self, self._lookup(topic, *_bound(key or string(), value or raw(), topic)))

    def _lookup(self, topic: str, key: Serde, value: Serde) -> TableLookup:
        if not self.copies_tables or key.name not in COPIED_KEYS:
            self.outline.sources.append(f"{topic} (whole, for each batch)")
            return WholeTable(last_rows(self._decoded(self._open_table(topic), key, value, None).frame))
        self.outline.sources.append(f"{topic} (whole once, then what has changed)")
        options = parse_source_options({**self._batch_options, "subscribe": topic}, is_streaming=False)
        empty = self.spark.createDataFrame([], "key BINARY, value BINARY")
        is_strict = self._bad_records == "fail"
        skipped = frozenset((partition, offset) for name, partition, offset in self._skipped if name == topic)
        find = finder(options, self.name, skipped)
        return CopiedTable(empty, key, value, find, topic=topic, is_strict=is_strict)

    def _open_stream(self, names: list[str], *, starting: str, headers: bool) -> DataFrame:
        """Read the records of the topics as they arrive."""
        return (
            self.spark.readStream.format("millbeck")
            .options(**self._options, startingOffsets=starting, includeHeaders=str(headers).lower())
            .option("subscribe", ",".join(names))
            .load()
        )

    def _open_table(self, topic: str) -> DataFrame:
        """Read all records that are in the topic when a batch begins."""
        return self.spark.read.format("millbeck").options(**self._batch_options).option("subscribe", topic).load()

    @property
    def _batch_options(self) -> dict[str, str]:
        """The options without those that only a stream has."""
        streams = [name.lower() for name in STREAM_OPTIONS]
        return {name: value for name, value in self._options.items() if name.lower() not in streams}

    def stream_of(self, frame: DataFrame) -> Stream:
        """A stream of any streaming DataFrame with the columns key, value and timestamp."""
        if "order" not in frame.columns:
            frame = frame.withColumn("order", unordered())
        missing = [name for name in COLUMNS if name not in frame.columns]
        if missing:
            raise TopologyError(f"a stream needs the columns key, value and timestamp; missing: {', '.join(missing)}")
        return Stream(self, frame.select(*COLUMNS))

    def table_of(self, rows: DataFrame | Records, *, name: str | None = None, is_kept: bool = False) -> Table:
        return Table(self, rows, name=name, is_kept=is_kept)

    def grouped(self, records: Records) -> GroupedStream:
        return GroupedStream(self, records)

    def grouped_table(self, table: Table, function: RecordFunction) -> GroupedTable:
        return GroupedTable(table, function)

    def _decoded(
        self,
        records: DataFrame,
        key: Serde,
        value: Serde,
        timestamp: Callable[[ColumnRecord], Column] | None,
    ) -> Records:
        for topic, partition, offset in self._skipped:
            place = (sf.col("topic") == topic) & (sf.col("partition") == partition) & (sf.col("offset") == offset)
            records = records.where(~sf.coalesce(place, sf.lit(False)))
        has_headers = HEADERS in records.columns
        decoded = records.select(
            key.read(sf.col("key")).alias("key"),
            value.read(sf.col("value")).alias("value"),
            "timestamp",
            sf.struct("partition", "offset", sf.lit(0).alias("step")).alias("order"),
            sf.struct("topic", "partition", "offset", "key", "value").alias("raw"),
            *([HEADERS] if has_headers else []),
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
        columns = {name: sf.col(name) for name in (*COLUMNS, *([HEADERS] if has_headers else []))}
        if timestamp is not None:
            read = timestamp(ColumnRecord.of_row()).cast("timestamp")
            columns["timestamp"] = sf.coalesce(read, sf.col("timestamp"))
        return self._without_bad(checked).then(lambda frame: Select(columns))

    def _without_bad(self, checked: DataFrame) -> Records:
        if self._bad_records == "fail":
            place = [sf.col("raw")[part] for part in ("topic", "partition", "offset")]
            where = sf.format_string("%s-%d at offset %d", *place)
            complaint = sf.raise_error(sf.concat(where, sf.lit(": "), sf.col("problem"))).cast("boolean")
            passes = sf.when(sf.col("problem").isNull(), sf.lit(True)).otherwise(complaint)
            return self._without_markers(checked.where(passes))
        read = self._without_markers(checked)
        if checked.isStreaming:
            bad = read.then(lambda frame: Keep(sf.col("problem").isNotNull()))
            self._outputs.append(((self._bad_records,), bad.then(lambda frame: Select(_letter(self._bad_records)))))
            told = f"{self._bad_records} (bad records)"
            if told not in self.outline.outputs:
                self.outline.outputs.append(told)
        return read.then(lambda frame: Keep(sf.col("problem").isNull()))

    def _without_markers(self, rows: DataFrame) -> Records:
        read = Records.of(rows)
        return without_markers(read) if self._has_markers and rows.isStreaming else read

    def without_late(self, results: DataFrame, operator: str, records: Records) -> Records:
        """The results of a windowed operator of these records; their column ``late`` is not null for late records.

        Late records are counted, as ``late`` of Spark's observed metrics, and go to the topic for late records.
        """
        made = Records.of(results.observe(f"late {operator}", sf.count("late").alias("late")), records)
        if self.late_records is not None:
            letter = {
                "key": sf.col("late")["record"]["key"],
                "value": sf.col("late")["record"]["value"],
                "timestamp": sf.col("timestamp"),
                "order": sf.col("order"),
                HEADERS: _headers("__millbeck.late", {"operator": sf.lit(operator), "timestamp": _ms("timestamp")}),
            }
            late = made.then(lambda frame: Keep(sf.col("late").isNotNull())).then(lambda frame: Select(letter))
            self.write(late, [self.late_records], None, key=None, value=None)
            self.outline.outputs[-1] = f"{self.late_records} (late records of {operator})"
        kept = {name: sf.col(name) for name in COLUMNS}
        return made.then(lambda frame: Keep(sf.col("late").isNull())).then(lambda frame: Select(kept))

    # Outputs

    def write(
        self, records: Records, topics: Sequence[str], chosen: Column | None, *, key: Serde | None, value: Serde | None
    ) -> None:
        """Write to the only topic, or to the one of several that the column ``chosen`` contains."""
        held = records.paths[0].frame.schema
        kinds = {part: held[part].dataType for part in ("key", "value")}
        given = (key or serde_for(kinds["key"]), value or serde_for(kinds["value"]))
        if chosen is not None and any(serde.bind is not None for serde in given):
            raise TopologyError("to: with several topics a serde with a registry needs subject=")
        serdes = _bound(*given, topics[0])
        written = {
            part: serde.encode(_fitted(serde, kind, part, topics[0])).cast("binary")
            for serde, (part, kind) in zip(serdes, kinds.items(), strict=True)
        }
        target = sf.lit(topics[0]) if chosen is None else _one_of(chosen, topics)

        def encoded(frame: DataFrame) -> Select:
            headers = with_headers(frame)[HEADERS]
            return Select({"topic": target, **written, HEADERS: headers}, takes_null=True)

        self._outputs.append((tuple(topics), records.then(encoded)))
        self.outline.outputs.extend(topics)

    def publish(self, records: Records, store: str, *, key: Serde | None, value: Serde | None) -> None:
        """Write the changes of a store to its changelog."""
        topic = changelog_of(self.name, store)
        if topic in self._changelogs:
            raise TopologyError(f"the store {store!r} is published twice")
        self.write(records, [topic], None, key=key, value=value)
        self._changelogs.append(topic)
        self.outline.outputs[-1] = f"{topic} (compacted: the changes of the store {store})"

    def outgoing(self, partition_counts: Mapping[str, int] | None = None, *, is_apart: bool = False) -> DataFrame:
        """All rows that the topology writes, in the format of the sink; ``is_apart`` reads each root once per path, as
        checkpoints of earlier versions require.

        With partition counts each row also has its partition, and one task has all rows of a partition, as exactly-once
        delivery requires.
        """
        if not any(topics not in ((self._bad_records,), (self.late_records,)) for topics, _ in self._outputs):
            raise TopologyError(f"the topology {self.name!r} has no output: end a stream or a table with to(topic)")
        paths = [path for _, records in self._outputs for path in records.paths]
        rows = apart(paths) if is_apart else united(paths)
        if partition_counts is None:
            return rows
        placed = with_log_partition(rows, partition_counts)
        return to_log_partitions(placed, partitions=max(partition_counts.values()))

    def keeps_final_results(self, checkpoint: str) -> bool:
        """Whether the checkpoint has state of windows with final results that this topology emits earlier."""
        rows = self.outgoing()
        if sources_of(rows) is None:
            return False
        return OffsetLog(self.spark, checkpoint).aggregate_count() > aggregate_count(rows)

    def _outgoing_for(self, checkpoint: str, partition_counts: Mapping[str, int] | None) -> DataFrame:
        """All rows that the topology writes, with sources that match those of the checkpoint if it exists."""
        rows = self.outgoing(partition_counts)
        wanted = sources_of(rows)
        if wanted is None:
            return rows
        offsets = OffsetLog(self.spark, checkpoint)
        if offsets.is_real_time():
            raise CheckpointMismatch(
                f"the checkpoint {checkpoint} was written in real-time mode: a trigger of batches needs a new one "
                "(--checkpoint)"
            )
        if source_count(offsets) is None:
            return rows
        if offsets.aggregate_count() > aggregate_count(rows):
            raise TopologyError(
                f"{self.name}: the checkpoint has state of windows with final results, which running results cannot "
                'read: use windowed_by(..., emit="final"), or another checkpoint'
            )
        held = offsets.stateful_count()
        if held != stateful_count(rows):
            # An earlier version kept the state of an operator once for each output.
            before = self.outgoing(partition_counts, is_apart=True)
            if held == stateful_count(before):
                log.warning("%s: this checkpoint keeps state once for each output; a new one does once", self.name)
                rows, wanted = before, sources_of(before) or []
        fit_sources(offsets, wanted)
        return rows

    def _make_changelogs(self) -> None:
        """Create missing changelogs, with as many partitions as the largest source topic."""
        if self._changelogs:
            count = max(self.partition_counts(self._sources).values(), default=1)
            options = parse_source_options(
                {**self._batch_options, "subscribe": ",".join(self._changelogs)}, is_streaming=False
            )
            make_changelogs(options.settings, dict.fromkeys(self._changelogs, count))

    def partition_counts(self, topics: Iterable[str]) -> dict[str, int]:
        """The number of partitions of each topic, asked of the brokers."""
        names = ",".join(sorted(set(topics)))
        if not names:
            return {}
        view = LogView(parse_source_options({**self._batch_options, "subscribe": names}, is_streaming=False))
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
        counts = self.partition_counts(self.written) if delivery == EXACTLY_ONCE else None
        writer = (
            self._outgoing_for(checkpoint, counts)
            .writeStream.format("millbeck")
            .queryName(self.name)
            .outputMode("append")
            .options(**self._options, delivery=delivery, checkpointLocation=checkpoint, **(options or {}))
            .option("skipped", " ".join(f"{topic}:{part}:{offset}" for topic, part, offset in self._skipped))
        )
        return writer.trigger(**(trigger or {"processingTime": "0 seconds"})).start()


def _one_of(chosen: Column, topics: Sequence[str]) -> Column:
    """The chosen topic; a record with another topic fails the query, so that no unintended topic is created."""
    text = sf.coalesce(chosen.cast("string"), sf.lit("null"))
    wrong = sf.concat(sf.lit("to: a record goes to the topic "), text, sf.lit(f", and topics= has {', '.join(topics)}"))
    return sf.when(chosen.isin(*topics), chosen).otherwise(sf.raise_error(wrong).cast("string"))


def _letter(topic: str) -> dict[str, Column]:
    """The unchanged bad record for this topic, with headers that contain its origin and the problem."""
    told = {name: sf.col("raw")[name].cast("string") for name in ("topic", "partition", "offset")}
    return {
        "topic": sf.lit(topic),
        "key": sf.col("raw")["key"],
        "value": sf.col("raw")["value"],
        HEADERS: _headers("__millbeck.error", {**told, "error": sf.col("problem")}),
    }


def _headers(prefix: str, told: Mapping[str, Column]) -> Column:
    headers = [
        sf.struct(sf.lit(f"{prefix}.{name}").alias("key"), text.cast("binary").alias("value"))
        for name, text in told.items()
    ]
    return sf.array(*headers).cast(HEADERS_TYPE)


def _ms(name: str) -> Column:
    return sf.unix_millis(name).cast("string")


def _bound(key: Serde, value: Serde, topic: str) -> tuple[Serde, Serde]:
    return key.bound_to(topic, KEY_PART), value.bound_to(topic, VALUE_PART)


def _fitted(serde: Serde, held: DataType, part: str, topic: str) -> Column:
    column = sf.col(part)
    return column if serde.kind is None else fitted(column, held, serde.kind, f"the {part} for {topic}")
