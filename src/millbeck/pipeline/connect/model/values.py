"""Values to texts and to other types, and the schema that a value has by itself: Connect's ``Values``.

Dates and times are in UTC, whatever the machine's time zone is.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.dates import DateFormat
from millbeck.pipeline.connect.model.logical import MS_PER_DAY, Instant
from millbeck.pipeline.connect.model.numbers import (
    Float32,
    Int8,
    Int16,
    Int32,
    float_of,
    float_text,
    whole_part,
    wrapped,
)
from millbeck.pipeline.connect.model.schema import (
    Schema,
    SchemaType,
    array_schema,
    map_schema,
)
from millbeck.pipeline.connect.model.struct import Struct, java_class, type_of

DATE_FORMAT: Final = DateFormat("yyyy-MM-dd")
TIME_FORMAT: Final = DateFormat("HH:mm:ss.SSS'Z'")
TIMESTAMP_FORMAT: Final = DateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")
JAVA_DATE_FORMAT: Final = DateFormat("EEE MMM dd HH:mm:ss zzz yyyy")

_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?", re.ASCII)
_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DIGITS_MAX: Final = 1000
_CLASSES: Final[Mapping[SchemaType, tuple[int, Any]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}


def decimal_from(text: str) -> Decimal:
    """The number of a text, with its scale. Raises ValueError."""
    if len(text) > _DIGITS_MAX or not _DECIMAL.fullmatch(text):
        raise ValueError("not a number")
    return Decimal(text)


def integer_from(text: str) -> int:
    """Raises ValueError for anything but an optional sign and digits."""
    if len(text) > _DIGITS_MAX or not _INTEGER.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text)


def date_format_of(value: Instant) -> DateFormat:
    """How a moment is written: as a time before the second of January 1970, as a date at midnight, or as both."""
    if value.milliseconds < MS_PER_DAY:
        return TIME_FORMAT
    return TIMESTAMP_FORMAT if value.milliseconds % MS_PER_DAY else DATE_FORMAT


def header_text(value: object) -> str:
    """The text of a value as SimpleHeaderConverter writes it: JSON-like, texts at the top without quotes."""
    return _literal(value, embedded=False)


def _literal(value: object, *, embedded: bool) -> str:
    match value:
        case None:
            return "null"
        case bool() | int() | float() | Decimal():
            return plain_text(value)
        case str() if embedded:
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case str():
            return value
        case bytes():
            text = base64.b64encode(value).decode()
            return f'"{text}"' if embedded else text
        case list():
            return "[" + ",".join(_literal(each, embedded=True) for each in value) + "]"
        case dict():
            return "{" + ",".join(f"{_embedded(key)}:{_embedded(each)}" for key, each in value.items()) + "}"
        case Struct():
            fields = (f"{_embedded(field.name)}:{_embedded(value[field.name])}" for field in value.schema.fields)
            return "{" + ",".join(fields) + "}"
        case Instant():
            return date_format_of(value).format(value.milliseconds)
    raise InvalidValue(f"Failed to serialize unexpected value type {java_class(value)}: {value}")


def _embedded(value: object) -> str:
    return _literal(value, embedded=True)


def plain_text(value: object) -> str:
    """The text of a value as Java's ``toString`` gives it, which is what StringConverter writes. Bytes have none."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case float():
            return float_text(value)
        case int() | Decimal() | str():
            return str(value)
        case list():
            return "[" + ", ".join(map(plain_text, value)) + "]"
        case dict():
            return "{" + ", ".join(f"{plain_text(key)}={plain_text(each)}" for key, each in value.items()) + "}"
        case Struct():
            fields = (f"{field.name}={plain_text(each)}" for field, each in value.items() if each is not None)
            return "Struct{" + ",".join(fields) + "}"
        case Instant():
            return JAVA_DATE_FORMAT.format(value.milliseconds)
    raise InvalidValue(f"class {java_class(value)} has no text: use a converter for bytes or JSON")


def whole_number_of(value: object, kind: SchemaType) -> int:
    """A number, or a text with one, as a whole number of this width; Java's casts, so high bits are lost."""
    bits, number = _CLASSES[kind]
    made: int = number(wrapped(_long_of(value), bits))
    return made


def float_number_of(value: object, kind: SchemaType) -> float:
    match value:
        case bool():
            found: float = _long_of(value)
        case int() | float():
            found = float(value)
        case Decimal():
            found = float_of(value)
        case str():
            try:
                found = float_of(decimal_from(value))
            except ValueError:
                found = _long_of(value)
        case _:
            found = _long_of(value)
    return Float32(found) if kind is SchemaType.FLOAT32 else found


def _long_of(value: object) -> int:
    match value:
        case bool():
            pass
        case int():
            return wrapped(value, 64)
        case float() | Decimal():
            return whole_part(value, 64)
        case str():
            try:
                return whole_part(decimal_from(value), 64)
            except ValueError:
                pass
    raise InvalidValue(f"Unable to convert {value} (class {java_class(value)}) to a number")


def converted(schema: Schema, value: object) -> Any:
    """A parsed value as another type, as the elements of one array are made alike. Raises `InvalidValue`."""
    if value is None:
        if schema.optional:
            return None
        raise InvalidValue("Unable to convert a null value to a schema that requires a value")
    if schema.name is not None and isinstance(value, (Instant, Decimal)):
        return value
    match schema.type:
        case SchemaType.INT8 | SchemaType.INT16 | SchemaType.INT32 | SchemaType.INT64:
            return whole_number_of(value, schema.type)
        case SchemaType.FLOAT32 | SchemaType.FLOAT64:
            return float_number_of(value, schema.type)
        case SchemaType.STRING:
            return header_text(value)
        case SchemaType.BOOLEAN:
            return value if isinstance(value, bool) else _long_of(value) != 0
        case SchemaType.ARRAY if isinstance(value, list):
            return value
        case SchemaType.MAP if isinstance(value, dict):
            return value
    raise InvalidValue(f"Unable to convert {value} (class {java_class(value)}) to {schema}")


def inferred_schema(value: object) -> Schema | None:
    """The schema of a value that comes without one; None when its parts have no common type."""
    if isinstance(value, Struct):
        return value.schema
    kind = type_of(value)
    if kind is SchemaType.ARRAY:
        element = _common_schema(list(value))  # type: ignore[call-overload]
        return None if element is None else array_schema(element)
    if isinstance(value, dict):
        key, each = _common_schema(list(value)), _common_schema(list(value.values()))
        return None if key is None or each is None else map_schema(key, each)
    return None if kind is None else Schema(kind)


def _common_schema(values: list[object]) -> Schema | None:
    kinds = {type_of(value) for value in values if value is not None}
    if len(kinds) != 1:
        return None
    kind = kinds.pop()
    return None if kind is None else Schema(kind, optional=any(value is None for value in values))
