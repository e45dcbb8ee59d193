"""Needs pyspark: partial aggregates of a batch by salted key, so that no task has all records of a hot key.

The records are shuffled by key and salt, and each task adds up what it has of a key, and of a window; the operator with
the state, which has one task for each key, gets these few parts instead of the records. Parts do not come in order, so
the result of an aggregate must not depend on the order of its records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StructField, StructType

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.keyed import RecordOrder
from millbeck.pipeline.topology.partials import (
    FIRST,
    FIRST_UNLESS_NULL,
    LAST,
    LAST_UNLESS_NULL,
    PARTIALS,
    PartialResults,
)

_BY_ORDER: Final = {
    id(FIRST): "first",
    id(FIRST_UNLESS_NULL): "first",
    id(LAST): "last",
    id(LAST_UNLESS_NULL): "last",
    id(PARTIALS["collect_list"]): "collect_list",
}


@dataclass(frozen=True, slots=True)
class BatchParts:
    """How the records of a key become one part: ``start`` makes the part of one value, ``merge`` joins two parts."""

    start: Callable[[Any], Any]
    merge: Callable[[Any, Any], Any]
    kind: DataType


def parts_of(partials: PartialResults, kind: StructType, what: str) -> BatchParts:
    """Parts that are partial results: dictionaries with the fields of ``kind``. Raises `TopologyError`."""
    for function in partials.functions:
        if id(function) in _BY_ORDER:
            raise TopologyError(
                f"{what}: the result of {_BY_ORDER[id(function)]} depends on the order of the records, which salted() "
                "does not keep: leave out salted()"
            )
    names = kind.names

    def start(inputs: Any) -> Any:
        return dict(zip(names, partials.start(tuple(inputs.values())), strict=True))

    def merge(one: Any, other: Any) -> Any:
        joined = partials.merge(tuple(one[name] for name in names), tuple(other[name] for name in names))
        return dict(zip(names, joined, strict=True))

    return BatchParts(start, merge, kind)


@dataclass(frozen=True, slots=True)
class MergedParts(PartialResults):
    """The same partial results, from inputs that are parts."""

    def start(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        return inputs[: len(self.functions)]


def merging(partials: PartialResults) -> PartialResults:
    return MergedParts(partials.functions, partials.widths)


def check_salts(salts: int) -> None:
    if salts < 1:
        raise TopologyError(f"salted: {salts} is not a number of salts: it must be above zero")


def added_up(frame: DataFrame, value: Column, salts: int, parts: BatchParts, *, pane: int = 0) -> DataFrame:
    """The columns key, value, timestamp and order, with one row for each key and salt of a batch, and for each pane of
    so many microseconds if they are given. Time and order are those of the last record.
    """
    salt = sf.pmod(sf.hash(*[sf.col("order")[part] for part in RecordOrder._fields]), sf.lit(salts))
    rows = frame.select(
        "key",
        value.alias("value"),
        "timestamp",
        "order",
        (sf.floor(sf.unix_micros("timestamp") / pane) if pane else sf.lit(0)).cast("bigint").alias("pane"),
        salt.alias("salt"),
    ).where(sf.col("key").isNotNull() & sf.col("value").isNotNull())
    schema = StructType(
        [
            rows.schema["key"],
            StructField("value", parts.kind),
            rows.schema["timestamp"],
            rows.schema["order"],
        ]
    )
    shuffled = rows.repartition("key", "salt").drop("salt")
    return shuffled.mapInArrow(_Adding(parts), schema)


class _Adding:
    """Adds up the rows of a task."""

    def __init__(self, parts: BatchParts) -> None:
        self._parts = parts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark.sql.pandas.types import to_arrow_type

        held: dict[Any, list[Any]] = {}
        start, merge = self._parts.start, self._parts.merge
        schema = None
        for batch in batches:
            schema = batch.schema
            columns = [batch.column(name).to_pylist() for name in ("key", "value", "timestamp", "order", "pane")]
            for key, value, timestamp, order, pane in zip(*columns, strict=True):
                name = (_hashable(key), pane)
                part = held.get(name)
                if part is None:
                    held[name] = [key, start(value), timestamp, order]
                    continue
                part[1] = merge(part[1], start(value))
                if timestamp > part[2]:
                    part[2] = timestamp
                if tuple(order.values()) > tuple(part[3].values()):
                    part[3] = order
        if schema is None or not held:
            return
        kinds = [
            schema.field("key").type,
            to_arrow_type(self._parts.kind, timezone="UTC"),
            schema.field("timestamp").type,
            schema.field("order").type,
        ]
        columns = [list(column) for column in zip(*held.values(), strict=True)]
        made = [pa.array(column, type=kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(made, names=["key", "value", "timestamp", "order"])


def _hashable(key: Any) -> Any:
    if isinstance(key, dict):
        return tuple((name, _hashable(value)) for name, value in key.items())
    return tuple(map(_hashable, key)) if isinstance(key, list) else key
