"""Needs pyspark: run the logic of one key (`keyed`) on Spark's state, by transformWithState.

The inputs are merged, with each record marked with its input; Spark groups the records by key and keeps the slots of
each key in its state store. In the state, structs are dictionaries. Output columns are the key, the emitted values, the
time and the order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import DataType, StructField, StructType

from millbeck.pipeline.topology.keyed import InputRecord, KeyedProcessor, RecordOrder, in_order

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


class _SparkSlots:
    def __init__(self, values: Mapping[str, Any], entries: Any) -> None:
        self._values = values
        self._entries = entries

    def get(self, slot: str) -> Any:
        held = self._values[slot].get()
        return None if held is None else held[0]

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
        self._slots = _SparkSlots(values, entries)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        arrivals = in_order(
            InputRecord(row.side, RecordOrder(**row.order), row.timestamp, row[f"value_{row.side}"]) for row in rows
        )
        for values, timestamp, order in self._logic.arrived(self._slots, arrivals):
            yield self._row(key[0], *values, timestamp, order._asdict())

    def close(self) -> None:
        """Nothing to close: Spark owns the state."""
