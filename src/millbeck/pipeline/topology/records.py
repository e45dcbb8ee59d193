"""Needs pyspark: the columns of every stream and table of a topology, and the record passed to user functions.

``key`` and ``value`` are typed; ``timestamp`` is the event time; ``order`` is the record's origin, so that the records
of a key can be ordered again after a shuffle; ``headers`` exist if they were requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, _parse_datatype_string

from millbeck.pipeline.errors import TopologyError

COLUMNS: Final = ("key", "value", "timestamp", "order")
HEADERS: Final = "headers"
HEADERS_TYPE: Final = "array<struct<key:string,value:binary>>"

Described: TypeAlias = Column | Mapping[str, Any] | str | int | float | bool | None
"""The result of a user function: a column, a plain value, or the fields of a struct as columns or plain values."""
ValueFunction: TypeAlias = Callable[[Column], Described]
JoinFunction: TypeAlias = Callable[[Column, Column], Described]


@dataclass(frozen=True, slots=True)
class ColumnRecord:
    """One record, as columns."""

    key: Column
    value: Column
    timestamp: Column
    headers: Column

    @classmethod
    def of_row(cls) -> ColumnRecord:
        return cls(sf.col("key"), sf.col("value"), sf.col("timestamp"), sf.col("headers"))


RecordFunction: TypeAlias = Callable[[ColumnRecord], Described]


def column(described: Any, what: str) -> Column:
    """Convert the result of a user function to a single column."""
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


def replacing(frame: DataFrame, **replaced: Column) -> dict[str, Column]:
    """The columns of the frame's records, some of them replaced."""
    names = [name for name in (*COLUMNS, HEADERS) if name in frame.columns]
    return {name: replaced.get(name, sf.col(name)) for name in names}


def with_headers(frame: DataFrame) -> dict[str, Column]:
    """The columns of the frame's records, always with a column of headers."""
    headers = sf.col(HEADERS) if HEADERS in frame.columns else sf.lit(None)
    return {**replacing(frame), HEADERS: headers.cast(HEADERS_TYPE)}


def type_of(kind: str | DataType) -> DataType:
    """A Spark type, also from DDL text."""
    return _parse_datatype_string(kind) if isinstance(kind, str) else kind


def unordered() -> Column:
    """The order of records without an origin in one partition of the log."""
    return sf.struct(sf.lit(-1).alias("partition"), sf.lit(0).cast("bigint").alias("offset"), sf.lit(0).alias("step"))
