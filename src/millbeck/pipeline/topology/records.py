"""Needs pyspark: the columns every stream and table of a topology has, and what functions over them are given.

``key`` and ``value`` are typed; ``timestamp`` is the event's time; ``order`` says where the record came from, so that
the records of a key can be put in order again after a shuffle; ``headers`` are there when they were asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, _parse_datatype_string

from millbeck.pipeline.errors import TopologyError

COLUMNS: Final = ("key", "value", "timestamp", "order")

Described = Column | Mapping[str, Any]
"""A column, or the fields of an object: columns or plain values."""
ValueFunction = Callable[[Column], Described]
JoinFunction = Callable[[Column, Column], Described]


@dataclass(frozen=True, slots=True)
class Record:
    """One record, as columns."""

    key: Column
    value: Column
    timestamp: Column
    headers: Column

    @classmethod
    def of_row(cls) -> Record:
        return cls(sf.col("key"), sf.col("value"), sf.col("timestamp"), sf.col("headers"))


RecordFunction = Callable[[Record], Described]


def column(described: Any, what: str) -> Column:
    """What a function has returned, as one column."""
    if isinstance(described, Column):
        return described
    if isinstance(described, Mapping):
        if not described:
            raise TopologyError(f"{what} returned an object without fields")
        return sf.struct(*[column(part, what).alias(name) for name, part in described.items()])
    if described is None or isinstance(described, (str, int, float, bool)):
        return sf.lit(described)
    raise TopologyError(
        f"{what} returned {type(described).__name__}; it is called once, with columns, and returns a column or a"
        " dictionary of them"
    )


def with_columns(frame: DataFrame, **replaced: Column) -> DataFrame:
    """The same rows with some of the columns described anew."""
    names = [name for name in (*COLUMNS, "headers") if name in frame.columns]
    return frame.select(*[replaced.get(name, sf.col(name)).alias(name) for name in names])


def type_of(kind: str | DataType) -> DataType:
    """A type that may be written as Spark's DDL."""
    return _parse_datatype_string(kind) if isinstance(kind, str) else kind


def unordered() -> Column:
    """The order of records that do not come, or no longer come, from one place of the log."""
    return sf.struct(sf.lit(-1).alias("partition"), sf.lit(0).cast("bigint").alias("offset"), sf.lit(0).alias("step"))
