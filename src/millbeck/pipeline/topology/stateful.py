"""Needs pyspark: run the logic of one key (`keyed`, `running_windows`) on Spark's state, by transformWithState.

The inputs are merged, with each record marked with its input; Spark groups the records by key and keeps the slots of
each key in its state store. In the state, structs are dictionaries. Output columns are the key, the emitted values, the
time and the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)
from pyspark.sql.types import DataType, LongType, StructField, StructType

from millbeck.pipeline.topology.keyed import InputRecord, KeyedProcessor, RecordOrder, in_order
from millbeck.pipeline.topology.running_windows import Held, LateRecord, RunningWindows, WindowResult
from millbeck.pipeline.topology.state_sizes import bytes_of
from millbeck.pipeline.topology.state_values import Conversion, with_time_zones

ROCKSDB: Final = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
"""The only state store provider that supports Python processors."""


class JoinInput:
    """One input of a keyed operator, with its key and value columns."""

    def __init__(self, frame: DataFrame, *, key: Column, value: Column) -> None:
        self.rows = frame.select(key.alias("key"), value.alias("value"), sf.col("timestamp"), sf.col("order")).where(
            sf.col("key").isNotNull()
        )

    @property
    def key_type(self) -> DataType:
        return self.rows.schema["key"].dataType

    @property
    def bytes(self) -> int:
        """About how many bytes a state of its keys and values has for each key."""
        return bytes_of(self.key_type, self.value_type)

    @property
    def value_type(self) -> DataType:
        return self.rows.schema["value"].dataType


def run_keyed(
    sides: Sequence[JoinInput],
    logic: KeyedProcessor,
    *,
    slots: Mapping[str, DataType],
    outputs: Mapping[str, DataType],
    entries: tuple[DataType, DataType] | None = None,
) -> DataFrame:
    """``outputs`` name the emitted columns; ``entries`` are the types of the map, if the logic uses one."""
    pile = None
    for number, side in enumerate(sides):
        marked = side.rows.select(
            "key",
            sf.lit(number).alias("side"),
            "order",
            "timestamp",
            *[
                (sf.col("value") if other == number else sf.lit(None).cast(one.value_type)).alias(f"value_{other}")
                for other, one in enumerate(sides)
            ],
        )
        pile = marked if pile is None else pile.unionByName(marked)
    assert pile is not None, "the operator has no inputs"
    schema = StructType(
        [
            pile.schema["key"],
            *[StructField(name, kind) for name, kind in outputs.items()],
            pile.schema["timestamp"],
            pile.schema["order"],
        ]
    )
    processor = _KeyedProcessor(logic, dict(slots), entries, schema.names)
    return pile.groupBy("key").transformWithState(processor, schema, "Append", "None")


def run_windows(
    frame: DataFrame, logic: RunningWindows, *, inputs: Column, kind: StructType, late: Column | None
) -> DataFrame:
    """Run windows with running results over the records of a frame that has a watermark.

    Columns of the results: key, start and end in microseconds, partials of the type ``kind`` (null where a window no
    longer exists), latest in microseconds, order, and late: for a late record what ``late`` made of it, else null.
    """
    kept = sf.struct((sf.lit(True) if late is None else late).alias("record"))
    rows = frame.select(
        "key",
        "order",
        # An expression, not the column with the watermark: Spark would drop each record that is older than it, although
        # its windows may still be open.
        sf.unix_micros("timestamp").alias("at"),
        inputs.alias("inputs"),
        kept.alias("kept"),
    )
    schema = StructType(
        [
            rows.schema["key"],
            StructField("start", LongType()),
            StructField("end", LongType()),
            StructField("partials", kind),
            StructField("latest", LongType()),
            rows.schema["order"],
            StructField("late", rows.schema["kept"].dataType),
        ]
    )
    processor = _WindowProcessor(logic, kind, schema.names)
    return rows.groupBy("key").transformWithState(processor, schema, "Append", "EventTime")


class _SparkWindows:
    """The windows of a key in Spark's map state."""

    def __init__(self, held: Any, handle: StatefulProcessorHandle, conversions: Sequence[Conversion | None]) -> None:
        self._held = held
        self._handle = handle
        self._conversions = conversions
        self._timers: set[int] | None = None

    def get(self, start: int) -> Held | None:
        found = self._held.getValue((start,))
        return None if found is None else self._held_of(found)

    def entries(self) -> Iterator[tuple[int, Held]]:
        return iter([(key[0], self._held_of(value)) for key, value in self._held.iterator()])

    def put(self, start: int, held: Held) -> None:
        self._held.updateValue((start,), (*held.partials, held.latest, held.end))

    def remove(self, start: int) -> None:
        self._held.removeKey((start,))

    def wake(self, at_ms: int) -> None:
        timers = self._known_timers()
        if at_ms not in timers:
            timers.add(at_ms)
            self._handle.registerTimer(at_ms)

    def take_due(self, closed_ms: int) -> list[int]:
        timers = self._known_timers()
        due = sorted(at_ms for at_ms in timers if at_ms <= closed_ms)
        for at_ms in due:
            timers.remove(at_ms)
            self._handle.deleteTimer(at_ms)
        return due

    def _held_of(self, value: tuple[Any, ...]) -> Held:
        *partials, latest, end = value
        return Held(tuple(map(_converted, self._conversions, partials)), latest, end)

    def _known_timers(self) -> set[int]:
        if self._timers is None:
            self._timers = set(self._handle.listTimers())
        return self._timers


def _converted(conversion: Conversion | None, value: Any) -> Any:
    return value if conversion is None else conversion(value)


class _WindowProcessor(StatefulProcessor):
    def __init__(self, logic: RunningWindows, kind: StructType, columns: Sequence[str]) -> None:
        self._logic = logic
        self._kind = StructType([*kind.fields, StructField("latest", LongType()), StructField("end", LongType())])
        self._names = kind.names
        self._row = Row(*columns)

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._held = handle.getMapState("windows", _holding(LongType()), self._kind)
        self._conversions = [with_time_zones(self._kind[name].dataType) for name in self._names]

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        # The last value is none of the inputs of a function: it is there for late records.
        records = in_order(
            InputRecord(0, RecordOrder(**row.order), row.at, (*row.inputs.values(), row.kept)) for row in rows
        )
        closed = timerValues.getCurrentWatermarkInMs() * 1000
        store = _SparkWindows(self._held, self._handle, self._conversions)
        for number, made in enumerate(self._logic.arrived(store, records, closed)):
            if isinstance(made, LateRecord):
                record = made.record
                order = record.order._asdict()
                yield self._row(key[0], None, None, None, record.timestamp, order, record.value[-1])
            else:
                yield self._result(key, made, number)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        store = _SparkWindows(self._held, self._handle, self._conversions)
        expired = self._logic.expired(store, expiredTimerInfo.getExpiryTimeInMs() * 1000)
        for number, made in enumerate(expired):
            yield self._result(key, made, number)

    def _result(self, key: Any, made: WindowResult, number: int) -> Row:
        partials = None if made.partials is None else dict(zip(self._names, made.partials, strict=True))
        order = RecordOrder(-1, number, 0)._asdict()
        return self._row(key[0], made.start, made.end, partials, made.latest, order, None)

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""


class _SparkSlots:
    def __init__(self, values: Mapping[str, Any], entries: Any, conversions: Mapping[str, Conversion | None]) -> None:
        self._values = values
        self._entries = entries
        self._conversions = conversions

    def get(self, slot: str) -> Any:
        held = self._values[slot].get()
        return None if held is None else _converted(self._conversions[slot], held[0])

    def put(self, slot: str, value: Any) -> None:
        if value is None:
            self._values[slot].clear()
        else:
            self._values[slot].update((value,))

    def entries(self) -> Iterator[tuple[Any, Any]]:
        return iter([(key[0], value[0]) for key, value in self._entries.iterator()])

    def put_entry(self, key: Any, value: Any) -> None:
        if value is not None:
            self._entries.updateValue((key,), (value,))
        elif self._entries.containsKey((key,)):
            self._entries.removeKey((key,))


def _holding(kind: DataType) -> StructType:
    return StructType([StructField("held", kind)])


class _KeyedProcessor(StatefulProcessor):
    def __init__(
        self,
        logic: KeyedProcessor,
        slots: Mapping[str, DataType],
        entries: tuple[DataType, DataType] | None,
        columns: Sequence[str],
    ) -> None:
        self._logic = logic
        self._slot_types = slots
        self._entry_types = entries
        self._row = Row(*columns)

    def init(self, handle: StatefulProcessorHandle) -> None:
        values = {name: handle.getValueState(name, _holding(kind)) for name, kind in self._slot_types.items()}
        entries = None
        if self._entry_types is not None:
            key, value = self._entry_types
            entries = handle.getMapState("entries", _holding(key), _holding(value))
        conversions = {name: with_time_zones(kind) for name, kind in self._slot_types.items()}
        self._slots = _SparkSlots(values, entries, conversions)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        arrivals = in_order(
            InputRecord(row.side, RecordOrder(**row.order), row.timestamp, row[f"value_{row.side}"]) for row in rows
        )
        for values, timestamp, order in self._logic.arrived(self._slots, arrivals):
            yield self._row(key[0], *values, timestamp, order._asdict())

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""
