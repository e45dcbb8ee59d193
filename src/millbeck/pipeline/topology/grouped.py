"""Needs pyspark: aggregates, of streams and tables by key, and of streams by key and window.

Without a window the result is a table: Python functions fold each value into the aggregate, which Spark keeps in state,
or Spark's aggregate functions describe it. With a window Spark's aggregate functions do.

``emit`` says when results are emitted: ``update``, the default, once per key (and window) and batch; ``every`` after
each record; ``final``, only with a window, once, after the window and its grace period have ended.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, LongType, TimestampType

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.aggregates import RunningAggregate
from millbeck.pipeline.topology.keyed import CogroupFold, Fold, PartialFold
from millbeck.pipeline.topology.partials import PartialResults
from millbeck.pipeline.topology.paths import Keep, Records
from millbeck.pipeline.topology.records import ColumnRecord, RecordFunction, column, type_of, unordered
from millbeck.pipeline.topology.running_windows import (
    EMITS,
    EVERY,
    FINAL,
    UPDATE,
    RunningSessions,
    RunningSlidingWindows,
    RunningTimeWindows,
    RunningWindows,
)
from millbeck.pipeline.topology.salting import BatchParts, added_up, check_salts, merging, parts_of
from millbeck.pipeline.topology.state_sizes import bytes_of
from millbeck.pipeline.topology.stateful import JoinInput, run_keyed, run_windows
from millbeck.pipeline.topology.streams import Stream, same_type
from millbeck.pipeline.topology.watermarks import is_behind_watermark, with_watermark
from millbeck.pipeline.topology.windows import SessionWindow, SlidingWindow, TimeWindow, Window, interval

if TYPE_CHECKING:
    from millbeck.pipeline.topology.tables import Table
    from millbeck.pipeline.topology.topology import Topology

_WINDOW = (TimestampType(), TimestampType(), TimestampType())

Folding = Callable[[Any, Any], Any]


def _one(value: Any) -> int:
    return 1


def _same(value: Any) -> Any:
    return value


def _one_more(count: int, value: Any) -> int:
    return count + 1


def _one_less(count: int, value: Any) -> int:
    return count - 1


class _Grouped:
    def __init__(self, topology: Topology, side: JoinInput, records: Records) -> None:
        self.topology = topology
        self._side = side
        self._records = records

    def _fold(
        self, logic: Fold | PartialFold, kind: DataType, store: str | None, what: str, side: JoinInput | None = None
    ) -> Table:
        rows = run_keyed([side or self._side], logic, slots={"value": kind}, outputs={"value": kind})
        self.topology.outline.shuffled(f"{what}, by key")
        size = bytes_of(self._side.key_type, kind)
        name = self.topology.outline.store(store, what, f"the {what} of each key", bytes_per_key=size)
        return self._table(rows, name=store and name)

    def _table(self, rows: DataFrame, *, name: str | None) -> Table:
        return self.topology.table_of(Records.of(rows, self._records), name=name, is_kept=True)


class GroupedStream(_Grouped):
    def __init__(self, topology: Topology, records: Records, *, salts: int | None = None) -> None:
        frame = records.frame
        super().__init__(topology, JoinInput(frame, key=sf.col("key"), value=sf.col("value")), records)
        self._frame = frame
        self._salts = salts

    def salted(self, salts: int) -> GroupedStream:
        """The same groups, for hot keys: of each batch, parts of a key are added up by so many tasks, and then the
        parts. The result of an aggregate must not depend on the order of its records.
        """
        check_salts(salts)
        self.topology.needs_batches("salted")
        return GroupedStream(self.topology, self._records, salts=salts)

    def _parts(self, frame: DataFrame, value: Column, parts: BatchParts, what: str, emit: str) -> JoinInput:
        """The parts that each batch adds up, for the operator that puts them together."""
        assert self._salts is not None
        if _is_every(emit):
            raise TopologyError(f'{what}: salted() adds up the records of a batch: emit="every" needs each of them')
        self.topology.outline.shuffled(f"{what} of each batch, by key and salt, {self._salts} parts of a key")
        rows = added_up(frame, value, self._salts, parts)
        return JoinInput(rows, key=sf.col("key"), value=sf.col("value"))

    def count(self, *, store: str | None = None, emit: str = UPDATE) -> Table:
        if self.topology.is_real_time:
            return self._spark_aggregate(sf.count(sf.lit(1)), "count", store, emit)
        if self._salts is not None:
            parts = BatchParts(_one, operator.add, LongType())
            side = self._parts(self._frame, sf.lit(1), parts, "count", emit)
            return self._fold(Fold(0, operator.add), LongType(), store, "count", side)
        logic = Fold(0, _one_more, is_every=_is_every(emit))
        return self._fold(logic, LongType(), store, "count")

    def reduce(self, function: Folding, *, store: str | None = None, emit: str = UPDATE) -> Table:
        """``function`` gets two values and returns one of the same type."""
        self.topology.needs_batches("reduce of Python values", "aggregate_columns")
        kind = self._side.value_type
        if self._salts is not None:
            side = self._parts(self._frame, sf.col("value"), BatchParts(_same, function, kind), "reduce", emit)
            return self._fold(Fold(None, function), kind, store, "reduce", side)
        return self._fold(Fold(None, function, is_every=_is_every(emit)), kind, store, "reduce")

    def aggregate(
        self,
        start: Any,
        function: Folding,
        *,
        type: str | DataType,  # noqa: A002
        store: str | None = None,
        emit: str = UPDATE,
    ) -> Table:
        """``function`` gets the aggregate, which is initially ``start``, and a value; it returns the new aggregate,
        which has the type ``type``.
        """
        self.topology.needs_batches("aggregate of Python values", "aggregate_columns")
        if self._salts is not None:
            raise TopologyError(
                "aggregate: a function of an aggregate and a value cannot put parts together, as salted() needs: use "
                "aggregate_columns or reduce"
            )
        logic = Fold(start, function, is_every=_is_every(emit))
        return self._fold(logic, type_of(type), store, "aggregate")

    def _spark_aggregate(self, value: Column, what: str, store: str | None, emit: str) -> Table:
        """An aggregate of Spark's own, as real-time mode needs it."""
        if _is_every(emit):
            self.topology.needs_batches(f'{what} with emit="every"', 'emit="update"')
        kept = _with_key_and_value(self._frame)
        made = kept.groupBy("key").agg(value.alias("value"), sf.max("timestamp").alias("timestamp"))
        self.topology.outline.shuffled(f"{what}, by key")
        size = bytes_of(made.schema["key"].dataType, made.schema["value"].dataType, TimestampType())
        name = self.topology.outline.store(store, what, f"the {what} of each key", bytes_per_key=size)
        results = made.select("key", "value", "timestamp", unordered().alias("order"))
        return self._table(results, name=store and name)

    def aggregate_columns(self, function: RecordFunction, *, store: str | None = None, emit: str = UPDATE) -> Table:
        """``function`` returns Spark's aggregates over the record: ``{"total": functions.sum(sale.value.amount)}``."""
        described = column(function(_record()), "aggregate_columns")
        if self.topology.is_real_time:
            return self._spark_aggregate(described, "aggregate", store, emit)
        kept = _with_key_and_value(self._frame)
        running = RunningAggregate(kept, described, "aggregate_columns")
        side = JoinInput(kept, key=sf.col("key"), value=running.inputs)
        logic = PartialFold(running.partials, is_every=_is_every(emit))
        if self._salts is not None:
            parts = parts_of(running.partials, running.kind, "aggregate_columns")
            side = self._parts(kept, running.inputs, parts, "aggregate", emit)
            logic = PartialFold(merging(running.partials))
        rows = run_keyed(
            [side],
            logic,
            slots={"value": running.kind},
            outputs={"partials": running.kind},
        )
        self.topology.outline.shuffled("aggregate, by key")
        size = bytes_of(side.key_type, running.kind)
        name = self.topology.outline.store(store, "aggregate", "the aggregate of each key", bytes_per_key=size)
        results = rows.select("key", running.values_of(rows, "partials").alias("value"), "timestamp", "order")
        return self._table(results, name=store and name)

    def cogroup(self, function: Folding) -> CogroupedStream:
        """Begin an aggregate of several grouped streams; ``function`` adds a value of this one to the aggregate."""
        self.topology.needs_batches("cogroup")
        if self._salts is not None:
            raise TopologyError("cogroup: not possible with salted()")
        return CogroupedStream(self.topology, [(self, function)])

    def windowed_by(self, window: Window, *, emit: str | None = None) -> WindowedStream:
        """``emit`` is ``update``, ``every`` or ``final``, by default ``update``."""
        chosen = emit or self.topology.default_emit
        if chosen not in EMITS:
            raise TopologyError(f"windowed_by: emit is {', '.join(EMITS)}, not {emit!r}")
        return WindowedStream(self.topology, self._records, window, chosen, salts=self._salts)


class CogroupedStream:
    """Several streams grouped by keys of one type, each with the function that adds its values to one aggregate."""

    def __init__(self, topology: Topology, parts: Sequence[tuple[GroupedStream, Folding]]) -> None:
        self.topology = topology
        self._parts = tuple(parts)

    def cogroup(self, other: GroupedStream, function: Folding) -> CogroupedStream:
        same_type(self._parts[0][0]._side.key_type, other._side.key_type, "grouped streams")
        return CogroupedStream(self.topology, [*self._parts, (other, function)])

    def aggregate(
        self,
        start: Any,
        *,
        type: str | DataType,  # noqa: A002
        store: str | None = None,
        emit: str = UPDATE,
    ) -> Table:
        """Return a table of the aggregates of type ``type``; ``start`` is the initial value of each."""
        sides = [grouped._side for grouped, _ in self._parts]
        kind = type_of(type)
        logic = CogroupFold(start, tuple(function for _, function in self._parts), is_every=_is_every(emit))
        rows = run_keyed(sides, logic, slots={"value": kind}, outputs={"value": kind})
        self.topology.outline.shuffled(f"aggregate of {len(sides)} streams, by key")
        size = bytes_of(sides[0].key_type, kind)
        name = self.topology.outline.store(store, "cogroup", "the aggregate of each key", bytes_per_key=size)
        results = Records.of(rows, *[grouped._records for grouped, _ in self._parts])
        return self.topology.table_of(results, name=store and name, is_kept=True)


class GroupedTable(_Grouped):
    """A table grouped by another key. For each change the old value is subtracted and the new one added."""

    def __init__(self, table: Table, function: RecordFunction) -> None:
        table.topology.needs_batches("group_by of a table")
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
        super().__init__(table.topology, JoinInput(signed, key=sf.col("key"), value=sf.col("value")), table.records)

    def count(self, *, store: str | None = None, emit: str = UPDATE) -> Table:
        logic = Fold(0, _one_more, _one_less, is_every=_is_every(emit))
        return self._fold(logic, LongType(), store, "count")

    def reduce(self, add: Folding, subtract: Folding, *, store: str | None = None, emit: str = UPDATE) -> Table:
        logic = Fold(None, add, subtract, is_every=_is_every(emit))
        return self._fold(logic, self._kept_type, store, "reduce")

    def aggregate(
        self,
        start: Any,
        add: Folding,
        subtract: Folding,
        *,
        type: str | DataType,  # noqa: A002
        store: str | None = None,
        emit: str = UPDATE,
    ) -> Table:
        logic = Fold(start, add, subtract, is_every=_is_every(emit))
        return self._fold(logic, type_of(type), store, "aggregate")


class WindowedStream:
    """Results of windows; their keys are ``{key, start, end}``. Event time advances between batches, so no record is
    late within its batch.
    """

    def __init__(
        self, topology: Topology, records: Records, window: Window, emit: str, *, salts: int | None = None
    ) -> None:
        self.topology = topology
        self._records = records
        self._window = window
        self._emit = emit
        self._salts = salts
        if salts is not None:
            self._check_salted(window)

    def count(self, *, store: str | None = None) -> Stream:
        return self._aggregate(sf.count(sf.lit(1)), "count", store)

    def aggregate(self, function: RecordFunction, *, store: str | None = None) -> Stream:
        """``function`` returns Spark's aggregates over the record: ``{"total": functions.sum(sale.value.amount)}``."""
        return self._aggregate(column(function(_record()), "aggregate"), "aggregate", store)

    def reduce(self, function: Callable[[Column, Column], Column], *, store: str | None = None) -> Stream:
        """``function`` gets two values as columns and returns one; the window's values are kept until it closes."""
        ordered = sf.transform(sf.array_sort(sf.collect_list(sf.struct("order", "value"))), lambda one: one["value"])
        first, rest = sf.element_at(ordered, 1), sf.slice(ordered, 2, sf.greatest(sf.size(ordered) - 1, sf.lit(0)))
        return self._aggregate(sf.aggregate(rest, first, function), "reduce", store)

    def _aggregate(self, value: Column, what: str, store: str | None) -> Stream:
        if self.topology.is_real_time:
            self._check_real_time(what)
        kept = self._records.then(lambda frame: Keep(_has_key_and_value()))
        rows = with_watermark(kept, self._window.grace_ms)
        self.topology.outline.shuffled(f"windowed {what}, by key")
        made = rows.groupBy("key").agg(value.alias("value")).schema
        size = bytes_of(made["key"].dataType, *_WINDOW, made["value"].dataType)
        name = self.topology.outline.store(
            store,
            f"windowed-{what}",
            f"the {what} of each key in each open window",
            bytes_per_key=size,
            counted="key and open window",
        )
        # Spark's own windows tell final results only, and take any aggregate; they do not hand out late records.
        # Behind another operator with a watermark they would need its column of times.
        is_behind = any(is_behind_watermark(path.frame) for path in self._records.paths)
        is_running = self._emit != FINAL or isinstance(self._window, SlidingWindow) or is_behind
        if (is_running or self.topology.late_records is not None) and not self.topology.is_real_time:
            return Stream(self.topology, self._running(rows, value, what, name), store=store)
        return Stream(self.topology, Records.of(self._final(rows, value), self._records), store=store)

    def _check_salted(self, window: Window) -> None:
        if not isinstance(window, TimeWindow) or window.size_ms % window.advance_ms:
            raise TopologyError("salted: only with tumbling windows, and with hopping ones that advance by equal parts")
        if self._emit == EVERY:
            raise TopologyError('salted() adds up the records of a batch: emit="every" needs each of them')
        if self.topology.late_records is not None:
            raise TopologyError("salted() adds up the records of a batch, and late_records needs each of them")

    def _check_real_time(self, what: str) -> None:
        if not isinstance(self._window, TimeWindow):
            self.topology.needs_batches(f"windowed {what}: a session or sliding window", "tumbling or hopping windows")
        if self._emit != UPDATE:
            self.topology.needs_batches(f'windowed {what}: emit="{self._emit}"', 'emit="update"')

    def _final(self, rows: DataFrame, value: Column) -> DataFrame:
        """Spark's own windows: final results, or running ones in real-time mode."""
        window = self._window
        if isinstance(window, TimeWindow):
            bounds = sf.window("timestamp", interval(window.size_ms), interval(window.advance_ms))
        else:
            assert isinstance(window, SessionWindow)
            bounds = sf.session_window("timestamp", interval(window.gap_ms))
        made = rows.groupBy("key", bounds.alias("window")).agg(
            value.alias("value"), sf.max("timestamp").alias("latest")
        )
        key = sf.struct("key", sf.col("window")["start"].alias("start"), sf.col("window")["end"].alias("end"))
        return made.select(key.alias("key"), "value", sf.col("latest").alias("timestamp"), unordered().alias("order"))

    def _running(self, rows: DataFrame, value: Column, what: str, name: str) -> Records:
        if getattr(rows, "_jdf", None) is None:
            raise TopologyError(
                f"windowed {what}: with Spark Connect there are only final results of tumbling, hopping and session "
                'windows: use emit="final", and no late_records'
            )
        running = RunningAggregate(rows, value, f"windowed {what}")
        late = sf.struct("key", "value") if self.topology.late_records is not None else None
        partials, inputs = running.partials, running.inputs
        if self._salts is not None:
            assert isinstance(self._window, TimeWindow)
            parts = parts_of(partials, running.kind, f"windowed {what}")
            self.topology.outline.shuffled(f"{what} of each batch, by key and salt, {self._salts} parts of a window")
            rows = added_up(rows, inputs, self._salts, parts, pane=self._window.advance_ms * 1000)
            partials, inputs = merging(partials), sf.col("value")
        made = run_windows(rows, self._logic(partials), inputs=inputs, kind=running.kind, late=late)
        bounds = [sf.timestamp_micros(edge).alias(edge) for edge in ("start", "end")]
        told = running.values_of(made, "partials")
        results = made.select(
            sf.struct("key", *bounds).alias("key"),
            sf.when(sf.col("partials").isNotNull(), told).alias("value"),
            sf.timestamp_micros("latest").alias("timestamp"),
            "order",
            "late",
        )
        return self.topology.without_late(results, name, self._records)

    def _logic(self, partials: PartialResults) -> RunningWindows:
        window = self._window
        if isinstance(window, TimeWindow):
            return RunningTimeWindows(window.size_ms * 1000, window.advance_ms * 1000, partials, self._emit)
        if isinstance(window, SessionWindow):
            return RunningSessions(window.gap_ms * 1000, partials, self._emit)
        return RunningSlidingWindows(window.difference_ms * 1000, partials, self._emit)


def _with_key_and_value(frame: DataFrame) -> DataFrame:
    return frame.where(_has_key_and_value())


def _has_key_and_value() -> Column:
    return sf.col("key").isNotNull() & sf.col("value").isNotNull()


def _record() -> ColumnRecord:
    return ColumnRecord(sf.col("key"), sf.col("value"), sf.col("timestamp"), sf.lit(None))


def _is_every(emit: str) -> bool:
    if emit not in (UPDATE, EVERY):
        raise TopologyError(
            f"emit is {UPDATE} or {EVERY} without a window, not {emit!r}: nothing says when it is final"
        )
    return emit == EVERY
