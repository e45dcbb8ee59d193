"""Needs pyspark: aggregates, of streams and tables by key, and of streams by key and window.

Without a window the result is a table that is updated with every record: Python functions fold each value into the
aggregate, which Spark keeps in state. With a window the result is final: it is emitted once, after the window and its
grace period have ended, and computed by Spark's aggregate functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, LongType

from millbeck.pipeline.topology.keyed import CogroupFold, Fold
from millbeck.pipeline.topology.records import ColumnRecord, RecordFunction, column, type_of, unordered
from millbeck.pipeline.topology.stateful import JoinInput, run_keyed
from millbeck.pipeline.topology.streams import Stream, same_type
from millbeck.pipeline.topology.windows import SessionWindow, TimeWindow, interval

if TYPE_CHECKING:
    from millbeck.pipeline.topology.tables import Table
    from millbeck.pipeline.topology.topology import Topology

Folding = Callable[[Any, Any], Any]


def _one_more(count: int, value: Any) -> int:
    return count + 1


def _one_less(count: int, value: Any) -> int:
    return count - 1


class _Grouped:
    def __init__(self, topology: Topology, side: JoinInput) -> None:
        self.topology = topology
        self._side = side

    def _fold(self, logic: Fold, kind: DataType, store: str | None, what: str) -> Table:
        rows = run_keyed([self._side], logic, slots={"value": kind}, outputs={"value": kind})
        self.topology.outline.shuffled(f"{what}, by key")
        name = self.topology.outline.store(store, what, f"the {what} of each key")
        return self.topology.table_of(rows, name=store and name, is_kept=True)


class GroupedStream(_Grouped):
    def __init__(self, topology: Topology, frame: DataFrame) -> None:
        super().__init__(topology, JoinInput(frame, key=sf.col("key"), value=sf.col("value")))
        self._frame = frame

    def count(self, *, store: str | None = None) -> Table:
        return self._fold(Fold(0, _one_more), LongType(), store, "count")

    def reduce(self, function: Folding, *, store: str | None = None) -> Table:
        """``function`` gets two values and returns one of the same type."""
        return self._fold(Fold(None, function), self._side.value_type, store, "reduce")

    def aggregate(self, start: Any, function: Folding, *, type: str | DataType, store: str | None = None) -> Table:  # noqa: A002
        """``function`` gets the aggregate, which is initially ``start``, and a value; it returns the new aggregate,
        which has the type ``type``.
        """
        return self._fold(Fold(start, function), type_of(type), store, "aggregate")

    def cogroup(self, function: Folding) -> CogroupedStream:
        """Begin an aggregate of several grouped streams; ``function`` adds a value of this one to the aggregate."""
        return CogroupedStream(self.topology, [(self._side, function)])

    def windowed_by(self, window: TimeWindow | SessionWindow) -> WindowedStream:
        return WindowedStream(self.topology, self._frame, window)


class CogroupedStream:
    """Several streams grouped by keys of one type, each with the function that adds its values to one aggregate."""

    def __init__(self, topology: Topology, parts: Sequence[tuple[JoinInput, Folding]]) -> None:
        self.topology = topology
        self._parts = tuple(parts)

    def cogroup(self, other: GroupedStream, function: Folding) -> CogroupedStream:
        side = other._side
        same_type(self._parts[0][0].key_type, side.key_type, "grouped streams")
        return CogroupedStream(self.topology, [*self._parts, (side, function)])

    def aggregate(self, start: Any, *, type: str | DataType, store: str | None = None) -> Table:  # noqa: A002
        """Return a table of the aggregates of type ``type``; ``start`` is the initial value of each."""
        sides = [side for side, _ in self._parts]
        kind = type_of(type)
        logic = CogroupFold(start, tuple(function for _, function in self._parts))
        rows = run_keyed(sides, logic, slots={"value": kind}, outputs={"value": kind})
        self.topology.outline.shuffled(f"aggregate of {len(sides)} streams, by key")
        name = self.topology.outline.store(store, "cogroup", "the aggregate of each key")
        return self.topology.table_of(rows, name=store and name, is_kept=True)


class GroupedTable(_Grouped):
    """A table grouped by another key. For each change the old value is subtracted and the new one added."""

    def __init__(self, table: Table, function: RecordFunction) -> None:
        changes = table.changes("the previous value of each row")
        self._kept_type = changes.schema["after"].dataType
        signed = None
        # Subtract before adding, as both may concern the same group.
        for step, side in enumerate(("before", "after")):
            record = ColumnRecord(sf.col("key"), sf.col(side), sf.col("timestamp"), sf.lit(None))
            rows = changes.where(sf.col(side).isNotNull()).select(
                column(function(record), "group_by").alias("key"),
                sf.struct(sf.lit(side == "after").alias("is_added"), sf.col(side).alias("value")).alias("value"),
                "timestamp",
                sf.col("order").withField("step", sf.col("order")["step"] * 2 + step).alias("order"),
            )
            signed = rows if signed is None else signed.unionByName(rows)
        assert signed is not None
        super().__init__(table.topology, JoinInput(signed, key=sf.col("key"), value=sf.col("value")))

    def count(self, *, store: str | None = None) -> Table:
        return self._fold(Fold(0, _one_more, _one_less), LongType(), store, "count")

    def reduce(self, add: Folding, subtract: Folding, *, store: str | None = None) -> Table:
        return self._fold(Fold(None, add, subtract), self._kept_type, store, "reduce")

    def aggregate(
        self,
        start: Any,
        add: Folding,
        subtract: Folding,
        *,
        type: str | DataType,  # noqa: A002
        store: str | None = None,
    ) -> Table:
        return self._fold(Fold(start, add, subtract), type_of(type), store, "aggregate")


class WindowedStream:
    """Final results only: a window is emitted once, after its end and grace. Keys become ``{key, start, end}``.

    Event time advances between batches, so no record is late within its batch, and the batch that closes a window still
    includes its records.
    """

    def __init__(self, topology: Topology, frame: DataFrame, window: TimeWindow | SessionWindow) -> None:
        self.topology = topology
        self._frame = frame
        self._window = window

    def count(self, *, store: str | None = None) -> Stream:
        return self._aggregate(sf.count(sf.lit(1)), "count", store)

    def aggregate(self, function: RecordFunction, *, store: str | None = None) -> Stream:
        """``function`` returns Spark's aggregates over the record: ``{"total": functions.sum(sale.value.amount)}``."""
        described = function(ColumnRecord(sf.col("key"), sf.col("value"), sf.col("timestamp"), sf.lit(None)))
        return self._aggregate(column(described, "aggregate"), "aggregate", store)

    def reduce(self, function: Callable[[Column, Column], Column], *, store: str | None = None) -> Stream:
        """``function`` gets two values as columns and returns one; the window's values are kept until it closes."""
        ordered = sf.transform(sf.array_sort(sf.collect_list(sf.struct("order", "value"))), lambda one: one["value"])
        first, rest = sf.element_at(ordered, 1), sf.slice(ordered, 2, sf.greatest(sf.size(ordered) - 1, sf.lit(0)))
        return self._aggregate(sf.aggregate(rest, first, function), "reduce", store)

    def _aggregate(self, value: Column, what: str, store: str | None) -> Stream:
        window = self._window
        if isinstance(window, TimeWindow):
            bounds = sf.window("timestamp", interval(window.size_ms), interval(window.advance_ms))
        else:
            bounds = sf.session_window("timestamp", interval(window.gap_ms))
        kept = self._frame.where(sf.col("key").isNotNull() & sf.col("value").isNotNull())
        rows = (
            kept.withWatermark("timestamp", interval(window.grace_ms))
            .groupBy("key", bounds.alias("window"))
            .agg(value.alias("value"), sf.max("timestamp").alias("latest"))
        )
        self.topology.outline.shuffled(f"windowed {what}, by key")
        self.topology.outline.store(store, f"windowed-{what}", f"the {what} of each key in each open window")
        key = sf.struct("key", sf.col("window")["start"].alias("start"), sf.col("window")["end"].alias("end"))
        results = rows.select(
            key.alias("key"), "value", sf.col("latest").alias("timestamp"), unordered().alias("order")
        )
        return Stream(self.topology, results, store=store)
