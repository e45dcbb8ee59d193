"""How values are converted, as the connector's settings say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from millbeck.pipeline.connect.model.schema import Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct


class DecimalMode(Enum):
    PRECISE = "precise"
    DOUBLE = "double"
    STRING = "string"


class TimeMode(Enum):
    ADAPTIVE = "adaptive"
    ADAPTIVE_TIME_MICROSECONDS = "adaptive_time_microseconds"
    MICROSECONDS = "microseconds"
    NANOSECONDS = "nanoseconds"
    CONNECT = "connect"


class IntervalMode(Enum):
    NUMERIC = "numeric"
    STRING = "string"


class BinaryMode(Enum):
    BYTES = "bytes"
    BASE64 = "base64"
    BASE64_URL_SAFE = "base64-url-safe"
    HEX = "hex"


class HstoreMode(Enum):
    JSON = "json"
    MAP = "map"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOptions:
    """``placeholder`` stands for a large value that an update left alone and the log does not have."""

    decimal: DecimalMode = DecimalMode.PRECISE
    time: TimeMode = TimeMode.ADAPTIVE
    interval: IntervalMode = IntervalMode.NUMERIC
    binary: BinaryMode = BinaryMode.BYTES
    hstore: HstoreMode = HstoreMode.JSON
    money_digits: int = 2
    includes_unknown: bool = False
    placeholder: bytes = b"__debezium_unavailable_value"


@dataclass(frozen=True, slots=True)
class Codec:
    """One type's schema, which is required and has no default, and the way from its text.

    ``fallback`` stands for a value that must not be null and is not in the log, as in old rows that hold only a key;
    ``placeholder`` for a large one that an update left alone, None where there is none.
    """

    schema: Schema
    decode: Any
    """``(bytes) -> value``; raises ValueError for a text that is none of this type's."""

    fallback: Any
    placeholder: Any = None

    def with_schema(self, schema: Schema) -> Codec:
        """The same values under a schema that differs in more than the type: a struct has to name its field's."""
        if schema.type is not SchemaType.STRUCT:
            return replace(self, schema=schema)
        decode = self.decode

        def named(data: bytes) -> Struct:
            made: Struct = decode(data)
            made.schema = schema
            return made

        fallback = Struct(schema)
        fallback.values = list(self.fallback.values)
        return replace(self, schema=schema, decode=named, fallback=fallback)
