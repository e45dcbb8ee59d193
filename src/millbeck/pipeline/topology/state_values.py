"""Needs pyspark: values from Spark's state, as the values of records are.

Times of records have a time zone, and times from the state have none: they are local. The two cannot be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import ArrayType, DataType, MapType, StructType, TimestampType

Conversion = Callable[[Any], Any]


def with_time_zones(kind: DataType) -> Conversion | None:
    """A function that gives the times in a value of this type their time zone; None if there are none."""
    if isinstance(kind, TimestampType):
        return _with_time_zone
    if isinstance(kind, StructType):
        return _struct([with_time_zones(field.dataType) for field in kind.fields], kind.names)
    if isinstance(kind, ArrayType):
        each = with_time_zones(kind.elementType)
        return None if each is None else lambda value: None if value is None else [each(one) for one in value]
    if isinstance(kind, MapType):
        parts = [with_time_zones(part) or _same for part in (kind.keyType, kind.valueType)]
        if parts == [_same, _same]:
            return None
        return lambda value: None if value is None else {parts[0](name): parts[1](one) for name, one in value.items()}
    return None


def _struct(fields: list[Conversion | None], names: list[str]) -> Conversion | None:
    if not any(fields):
        return None
    made = Row(*names)
    conversions = [field or _same for field in fields]

    def convert(value: Any) -> Any:
        if value is None:
            return None
        return made(*[field(value[name]) for field, name in zip(conversions, names, strict=True)])

    return convert


def _with_time_zone(value: datetime | None) -> datetime | None:
    return value.astimezone() if value is not None and value.tzinfo is None else value


def _same(value: Any) -> Any:
    return value
