"""Needs pyspark: streams of records and their operators."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor
from pyspark.sql.types import DataType, StructField, StructType

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.paths import Explode, Keep, Look, Records, Select
from millbeck.pipeline.topology.records import (
    COLUMNS,
    ColumnRecord,
    JoinFunction,
    RecordFunction,
    ValueFunction,
    column,
    replacing,
    type_of,
    unordered,
    with_headers,
)
from millbeck.pipeline.topology.serdes import Serde
from millbeck.pipeline.topology.state_sizes import bytes_of
from millbeck.pipeline.topology.watermarks import is_behind_watermark, with_watermark
from millbeck.pipeline.topology.windows import JoinWindow

if TYPE_CHECKING:
    from millbeck.pipeline.topology.grouped import GroupedStream
    from millbeck.pipeline.topology.tables import Table
    from millbeck.pipeline.topology.topology import Topology

Predicate = Callable[[ColumnRecord], Column]


class Joinable(Protocol):
    """A stream or table that a stream can be joined with."""

    def joined_by(self, stream: Stream, joiner: JoinFunction, how: str, options: Mapping[str, Any]) -> Stream:
        """Join a stream with this one; ``how`` is Spark's join type. Raises `TopologyError` for unsuitable options."""


class Stream:
    """A stream of independent records. Methods return new streams; a stream itself is immutable.

    ``store`` is the name of the store whose results these are, if any.
    """

    def __init__(self, topology: Topology, rows: DataFrame | Records, *, store: str | None = None) -> None:
        self.topology = topology
        self.records = rows if isinstance(rows, Records) else Records.of(rows)
        self._store = store

    @property
    def frame(self) -> DataFrame:
        return self.records.frame

    def _with(self, rows: DataFrame | Records) -> Stream:
        return Stream(self.topology, rows)

    def _keeping(self, condition: Column) -> Stream:
        return self._with(self.records.then(lambda frame: Keep(condition)))

    def _changing(self, **columns: Column) -> Stream:
        return self._with(self.records.then(lambda frame: Select(replacing(frame, **columns))))

    def _exploding(self, array: Column, **columns: Column) -> Stream:
        columns["order"] = sf.col("order").withField("step", sf.col("position"))
        return self._with(self.records.then(lambda frame: Explode(array, replacing(frame, **columns))))

    # One record at a time

    def filter(self, predicate: Predicate) -> Stream:
        return self._keeping(predicate(ColumnRecord.of_row()))

    def filter_not(self, predicate: Predicate) -> Stream:
        return self._keeping(~sf.coalesce(predicate(ColumnRecord.of_row()), sf.lit(False)))

    def map(self, function: Callable[[ColumnRecord], tuple[Any, Any]]) -> Stream:
        """``function`` returns the new key and the new value."""
        described = function(ColumnRecord.of_row())
        if not isinstance(described, tuple) or len(described) != 2:
            raise TopologyError("map: the function returns a key and a value; use map_values to keep the key")
        key, value = described
        return self._changing(key=column(key, "map"), value=column(value, "map"))

    def map_values(self, function: ValueFunction) -> Stream:
        return self._changing(value=column(function(sf.col("value")), "map_values"))

    def flat_map(self, function: Callable[[ColumnRecord], Column]) -> Stream:
        """``function`` returns an array of structs with a key and a value."""
        made = sf.col("made")
        return self._exploding(function(ColumnRecord.of_row()), key=made["key"], value=made["value"])

    def flat_map_values(self, function: Callable[[Column], Column]) -> Stream:
        """``function`` returns an array of values."""
        return self._exploding(function(sf.col("value")), value=sf.col("made"))

    def select_key(self, function: RecordFunction) -> Stream:
        return self._changing(key=column(function(ColumnRecord.of_row()), "select_key"))

    def branch(self, *predicates: Predicate) -> list[Stream]:
        """One stream per predicate, of the records that match it and no earlier one."""
        branches = []
        is_free = sf.lit(True)
        for predicate in predicates:
            holds = sf.coalesce(predicate(ColumnRecord.of_row()), sf.lit(False))
            branches.append(self._keeping(is_free & holds))
            is_free = is_free & ~holds
        return branches

    def merge(self, *others: Stream) -> Stream:
        streams = (self, *others)
        for other in others:
            if other._held() != self._held():
                raise TopologyError(f"merge: the streams have different types: {self._held()} and {other._held()}")
        paths = [path for stream in streams for path in stream.records.paths]
        if len({"headers" in path.frame.columns for path in paths}) > 1:
            paths = [path.then(Select(with_headers(path.frame))) for path in paths]
        return self._with(Records(paths))

    def _held(self) -> str:
        return str(self.records.paths[0].frame.select("key", "value").schema.simpleString())

    def peek(self, action: Callable[[Any, Any], object]) -> Stream:
        """Call ``action`` with each key and value in the task that processes the record, also when a batch is
        repeated."""
        self.topology.needs_batches("peek")
        return self._with(self.records.then(lambda frame: Look(action)))

    # Keys

    def group_by_key(self) -> GroupedStream:
        return self.topology.grouped(self.records)

    def group_by(self, function: RecordFunction) -> GroupedStream:
        return self.select_key(function).group_by_key()

    def repartition(self, partitions: int) -> Stream:
        """Shuffle the records by key into this number of tasks, which the following operators use up to the next
        shuffle.
        """
        if partitions < 1:
            raise TopologyError(f"repartition: {partitions} is not a number of partitions: it must be above zero")
        self.topology.needs_batches("repartition")
        self.topology.outline.shuffled(f"repartition by key, into {partitions}")
        return self._with(Records.of(self.frame.repartition(partitions, "key"), self.records))

    def to_table(self, *, store: str | None = None) -> Table:
        """A table of the last value of each key."""
        return self.topology.table_of(self.records, name=store)

    # Joins

    def join(self, other: Joinable, joiner: JoinFunction, **options: Any) -> Stream:
        """Join with a stream (``window=sliding_join(...)``), a table, or a global table (``key=`` is the key to look
        up).

        ``joiner`` gets both values as columns.
        """
        return other.joined_by(self, joiner, "inner", options)

    def left_join(self, other: Joinable, joiner: JoinFunction, **options: Any) -> Stream:
        return other.joined_by(self, joiner, "left_outer", options)

    def outer_join(self, other: Stream, joiner: JoinFunction, *, window: JoinWindow) -> Stream:
        return other.joined_by(self, joiner, "full_outer", {"window": window})

    def joined_by(self, stream: Stream, joiner: JoinFunction, how: str, options: Mapping[str, Any]) -> Stream:
        self.topology.needs_batches("join of two streams")
        window = options.get("window")
        if not isinstance(window, JoinWindow) or len(options) != 1:
            raise TopologyError(
                "a join of two streams takes window=sliding_join(...): without a window the records of both "
                "would be kept forever"
            )
        if any(is_behind_watermark(path.frame) for one in (stream, self) for path in one.records.paths):
            raise TopologyError(
                "a join of two streams cannot be behind another operator with a watermark, such as a window or a join "
                "of streams: write its results to a topic and join that, with through(topic, key=..., value=...)"
            )
        left = _prefixed(stream.records, "left", window.grace_ms)
        right = _prefixed(self.records, "right", window.grace_ms)
        same_type(left.schema["left_key"].dataType, right.schema["right_key"].dataType, "two streams")
        condition = (
            (sf.col("left_key") == sf.col("right_key"))
            & (sf.col("right_timestamp") >= sf.col("left_timestamp") - _span(window.before_ms))
            & (sf.col("right_timestamp") <= sf.col("left_timestamp") + _span(window.after_ms))
        )
        self.topology.outline.shuffled("join of two streams, by key")
        sides = (bytes_of(*[field.dataType for field in side.schema.fields]) for side in (left, right))
        self.topology.outline.store(
            None,
            "stream-join",
            "the records of both streams until their window has closed",
            bytes_per_key=sum(sides) // 2,
            counted="record",
        )
        joined = left.join(right, condition, how)
        rows = joined.select(
            sf.coalesce("left_key", "right_key").alias("key"),
            column(joiner(sf.col("left_value"), sf.col("right_value")), "join").alias("value"),
            sf.greatest("left_timestamp", "right_timestamp").alias("timestamp"),
            sf.coalesce("left_order", "right_order").alias("order"),
        )
        return self._with(Records.of(rows, stream.records, self.records))

    # State and timers

    def process(
        self,
        processor: StatefulProcessor,
        *,
        key: str | DataType,
        value: str | DataType,
        time: str = "None",
    ) -> Stream:
        """Run Spark's own processor per key: rows with key, value and timestamp in, the same three columns out.

        ``time`` is the time mode of its timers: ``EventTime``, ``ProcessingTime`` or ``None``.
        """
        self.topology.needs_batches("process")
        if time not in ("None", "EventTime", "ProcessingTime"):
            raise TopologyError(f"timers run on EventTime, ProcessingTime or None, not on {time!r}")
        fields = [
            StructField("key", type_of(key)),
            StructField("value", type_of(value)),
            self.frame.schema["timestamp"],
        ]
        rows = self.frame
        if time == "EventTime":
            rows = with_watermark(self.records, self.topology.lateness_ms)
        self.topology.outline.shuffled("processor, by key")
        self.topology.outline.store(None, "processor", f"the state of {type(processor).__name__}")
        rows = rows.select("key", "value", "timestamp")
        made = rows.groupBy("key").transformWithState(processor, StructType(fields), "Append", time)
        results = made.select("key", "value", "timestamp", unordered().alias("order"))
        return self._with(Records.of(results, self.records))

    # Outputs

    def to(
        self,
        topic: str | RecordFunction,
        *,
        topics: Sequence[str] = (),
        key: Serde | None = None,
        value: Serde | None = None,
    ) -> None:
        """Write to a topic, or to the one that a function of the record returns, which must be one of ``topics``."""
        if isinstance(topic, str):
            if topics:
                raise TopologyError("to: topics= needs a function of the record that chooses one of them")
            self.topology.write(self.records, [topic], None, key=key, value=value)
            return
        if not topics:
            raise TopologyError("to: name the topics that the function chooses from: to(function, topics=[…])")
        named = column(topic(ColumnRecord.of_row()), "to")
        self.topology.write(self.records, topics, named, key=key, value=value)

    def publish(self, *, key: Serde | None = None, value: Serde | None = None) -> Stream:
        """Also write the results of a windowed aggregate to the changelog of its store, which must have a name.

        The topic ``{app}-{store}-changelog`` is compacted; its keys are the keys of the results, which include the
        window.
        """
        if self._store is None:
            raise TopologyError("only the results of a windowed aggregate with store= can be published")
        self.topology.publish(self.records, self._store, key=key, value=value)
        return self

    def through(self, topic: str, *, key: Serde, value: Serde) -> Stream:
        """Write to the topic and continue with the records read from it."""
        self.to(topic, key=key, value=value)
        return self.topology.stream(topic, key=key, value=value)


def same_type(left: DataType, right: DataType, what: str) -> None:
    if left != right:
        raise TopologyError(
            f"a join of {what} needs keys of one type, these are {left.simpleString()} and {right.simpleString()}"
        )


def _span(milliseconds: int) -> Column:
    # A literal, since Spark needs the bounds of a join at planning time.
    return sf.expr(f"INTERVAL {milliseconds} MILLISECONDS")


def _prefixed(records: Records, prefix: str, grace_ms: int) -> DataFrame:
    is_whole = sf.col("key").isNotNull() & sf.col("value").isNotNull()
    rows = with_watermark(records.then(lambda frame: Keep(is_whole)), grace_ms)
    return rows.select(*[sf.col(name).alias(f"{prefix}_{name}") for name in COLUMNS])
