"""Schemas and values that must come back from a converter as they were."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

from millbeck.pipeline.connect.model.logical import (
    Instant,
    date_schema,
    decimal_schema,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32
from millbeck.pipeline.connect.model.schema import (
    BYTES_SCHEMA,
    INT32_SCHEMA,
    INT64_SCHEMA,
    STRING_SCHEMA,
    Field,
    Schema,
    SchemaType,
    array_schema,
    map_schema,
    struct_schema,
)
from millbeck.pipeline.connect.model.struct import Struct

DAY = 86_400_000

NAMED = struct_schema(
    [Field("x", INT32_SCHEMA)], basis=Schema(SchemaType.STRUCT, name="shop.Point", version=2, doc="d")
)
CASES: dict[str, tuple[Schema, list[Any]]] = {
    "int8": (Schema(SchemaType.INT8), [Int8(-128), Int8(127)]),
    "int16": (Schema(SchemaType.INT16, True), [Int16(-32768), None]),
    "int32 with a name": (
        Schema(SchemaType.INT32, name="shop.Level", version=3, doc="x", parameters={"a": "b"}),
        [Int32(-(2**31))],
    ),
    "int64": (INT64_SCHEMA, [-(2**63), 2**63 - 1]),
    "float32": (Schema(SchemaType.FLOAT32), [Float32(1.1), Float32(math.inf), Float32(-0.0)]),
    "float64": (Schema(SchemaType.FLOAT64), [0.1, -math.inf, 5e-324]),
    "boolean": (Schema(SchemaType.BOOLEAN, default=True), [True, False]),
    "string": (Schema(SchemaType.STRING, True, "none"), ["", "naïve 🚀\x00", None]),
    "bytes": (BYTES_SCHEMA, [b"", bytes(range(256))]),
    "decimal": (decimal_schema(3), [Decimal("-0.001"), Decimal("123456789012345678901234567890123456789.000")]),
    "date": (date_schema(), [Instant(-DAY), Instant(-800_000 * DAY), Instant(5_000_000 * DAY)]),
    "time": (time_schema(optional=True), [Instant(0), Instant(DAY - 1), None]),
    "timestamp": (timestamp_schema(), [Instant(-1), Instant(-(10**15)), Instant(10**15)]),
    "array": (array_schema(Schema(SchemaType.INT64, True)), [[], [1, None]]),
    "map": (map_schema(STRING_SCHEMA, Schema(SchemaType.INT32, True)), [{}, {"a": Int32(1), "b": None}]),
    "map of numbers": (map_schema(INT32_SCHEMA, STRING_SCHEMA), [{}, {Int32(1): "a"}]),
    "map with optional keys": (map_schema(Schema(SchemaType.STRING, True), INT64_SCHEMA), [{None: 1, "a": 2}]),
    "struct": (NAMED, [Struct.of(NAMED, {"x": 1})]),
}
