"""Structs as Arrow columns and back, without a loss: dates and times as numbers, decimals with their scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, Final

from millbeck.kernel.extras import needs_extra
from millbeck.pipeline.connect.connectors.debezium_types import (
    VARIABLE_SCALE_DECIMAL,
    Temporal,
    TemporalUnit,
    temporal_of,
)
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.logical import (
    DECIMAL,
    Instant,
    date_schema,
    decimal_schema,
    scale_of,
    stored_number,
    time_schema,
    timestamp_schema,
)
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32
from millbeck.pipeline.connect.model.schema import (
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

with needs_extra("objects"):
    import pyarrow as pa

DIGITS_MAX: Final = 38
_PLAIN: Final = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
    SchemaType.STRING: pa.string(),
    SchemaType.BYTES: pa.binary(),
}


def arrow_type(schema: Schema) -> Any:
    """The Arrow type of a schema. Raises `InvalidValue`."""
    unit = temporal_of(schema)
    if unit is not None and schema.type is not SchemaType.STRING:
        return _temporal_type(schema, unit)
    if schema.name == DECIMAL:
        scale = scale_of(schema)
        if not 0 <= scale <= DIGITS_MAX:
            raise InvalidValue(f"a Decimal of scale {scale} has no type here: scales are 0 to {DIGITS_MAX}")
        return pa.decimal128(DIGITS_MAX, scale)
    if schema.name == VARIABLE_SCALE_DECIMAL:
        return pa.struct([pa.field("scale", pa.int32(), False), pa.field("value", pa.binary(), False)])
    match schema.type:
        case SchemaType.STRUCT:
            return pa.struct([_field(each) for each in schema.fields])
        case SchemaType.ARRAY if schema.value_schema is not None:
            return pa.list_(pa.field("element", arrow_type(schema.value_schema), schema.value_schema.optional))
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            value = pa.field("value", arrow_type(schema.value_schema), schema.value_schema.optional)
            return pa.map_(arrow_type(schema.key_schema), value)
    return _PLAIN[schema.type]


def _temporal_type(schema: Schema, unit: TemporalUnit) -> Any:
    if unit.kind is Temporal.DATE:
        return pa.date32()
    is_time = unit.kind is Temporal.TIME
    if unit.multiplier == 1000:
        return pa.time32("ms") if is_time else pa.timestamp("ms", tz="UTC")
    name = "us" if unit.divisor == 1 else "ns"
    return pa.time64(name) if is_time else pa.timestamp(name, tz="UTC")


def _field(each: Field) -> Any:
    return pa.field(each.name, arrow_type(each.schema), each.schema.optional)


def arrow_schema(schema: Schema) -> Any:
    """The columns of structs; a value of another type is the column ``value``."""
    if schema.type is not SchemaType.STRUCT:
        return pa.schema([pa.field("value", arrow_type(schema), schema.optional)])
    return pa.schema([_field(each) for each in schema.fields])


def plain_value(schema: Schema, value: Any) -> Any:
    """A value as `pyarrow.array` takes it for `arrow_type`. Raises `InvalidValue`."""
    if value is None:
        if schema.default is not None:
            return plain_value(schema, schema.default)
        if schema.optional:
            return None
        raise InvalidValue(f"null in a required {schema.type.name}")
    if isinstance(value, Instant):
        return stored_number(schema, value)
    if schema.name == DECIMAL:
        return _fitting(value)
    match schema.type:
        case SchemaType.STRUCT:
            return {each.name: plain_value(each.schema, found) for each, found in value.items()}
        case SchemaType.ARRAY if schema.value_schema is not None:
            return [plain_value(schema.value_schema, each) for each in value]
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            return [
                (plain_value(schema.key_schema, name), plain_value(schema.value_schema, each))
                for name, each in value.items()
            ]
        case SchemaType.STRING:
            try:
                value.encode()
            except UnicodeEncodeError:
                raise InvalidValue("a text has half a character of UTF-16, which UTF-8 cannot hold") from None
    return value


def _fitting(value: Decimal) -> Decimal:
    if len(value.as_tuple().digits) > DIGITS_MAX:
        raise InvalidValue(f"a Decimal has more than {DIGITS_MAX} digits")
    return value


def table_of(schema: Schema, rows: Sequence[Any]) -> Any:
    """A table of rows that `plain_value` has made."""
    columns = arrow_schema(schema)
    if schema.type is not SchemaType.STRUCT:
        return pa.Table.from_arrays([pa.array(rows, columns.field(0).type)], schema=columns)
    arrays = [pa.array([row[field.name] for row in rows], field.type) for field in columns]
    return pa.Table.from_arrays(arrays, schema=columns) if arrays else pa.table({})


# and back


def schema_of_arrow(kind: Any, *, optional: bool = False) -> Schema:
    """The schema of an Arrow type, as files have it. Raises `InvalidValue`."""
    if pa.types.is_struct(kind):
        fields = [Field(each.name, schema_of_arrow(each.type, optional=each.nullable)) for each in kind]
        return struct_schema(fields, optional=optional)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        element = schema_of_arrow(kind.value_type, optional=kind.value_field.nullable)
        return array_schema(element, optional=optional)
    if pa.types.is_map(kind):
        value = schema_of_arrow(kind.item_type, optional=kind.item_field.nullable)
        return map_schema(schema_of_arrow(kind.key_type), value, optional=optional)
    if pa.types.is_decimal(kind):
        return decimal_schema(kind.scale, optional=optional)
    if pa.types.is_date32(kind):
        return date_schema(optional=optional)
    if pa.types.is_time32(kind) and kind.unit == "ms":
        return time_schema(optional=optional)
    if pa.types.is_timestamp(kind):
        if kind.unit == "ms":
            return timestamp_schema(optional=optional)
        name = {"us": "io.debezium.time.MicroTimestamp", "ns": "io.debezium.time.NanoTimestamp"}.get(kind.unit)
        if name is not None:
            return replace(INT64_SCHEMA, name=name, version=1, optional=optional)
    if pa.types.is_time64(kind):
        name = "io.debezium.time.MicroTime" if kind.unit == "us" else "io.debezium.time.NanoTime"
        return replace(INT64_SCHEMA, name=name, version=1, optional=optional)
    if pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return replace(STRING_SCHEMA, optional=optional)
    for known, plain in _PLAIN.items():
        if plain.equals(kind):
            return Schema(known, optional=optional)
    raise InvalidValue(f"Arrow's type {kind} has no schema of Connect")


_NUMBERS: Final = {
    SchemaType.INT8: Int8,
    SchemaType.INT16: Int16,
    SchemaType.INT32: Int32,
    SchemaType.FLOAT32: Float32,
}


def storage_of(column: Any) -> Any:
    """A column whose dates and times are numbers, also inside structs and lists."""
    kind = _storage_type(column.type)
    return column if kind.equals(column.type) else column.cast(kind)


def _storage_type(kind: Any) -> Any:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _storage_type(each.type), each.nullable) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _storage_type(kind.value_type), kind.value_field.nullable))
    if pa.types.is_map(kind):
        value = pa.field(kind.item_field.name, _storage_type(kind.item_type), kind.item_field.nullable)
        return pa.map_(_storage_type(kind.key_type), value)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind) or pa.types.is_time64(kind):
        return pa.int64()
    return kind


def value_of_plain(schema: Schema, found: Any) -> Any:
    """A value of ``to_pylist`` of a `storage_of` column."""
    if found is None:
        return None
    unit = temporal_of(schema)
    if unit is not None and (schema.name or "").startswith("org.apache"):
        return Instant(found * 86_400_000 if unit.kind is Temporal.DATE else found)
    match schema.type:
        case SchemaType.STRUCT:
            made = Struct(schema)
            made.values = [value_of_plain(each.schema, found[each.name]) for each in schema.fields]
            return made
        case SchemaType.ARRAY if schema.value_schema is not None:
            return [value_of_plain(schema.value_schema, each) for each in found]
        case SchemaType.MAP if schema.key_schema is not None and schema.value_schema is not None:
            return {
                value_of_plain(schema.key_schema, name): value_of_plain(schema.value_schema, each)
                for name, each in found
            }
    number = _NUMBERS.get(schema.type)
    return found if number is None else number(found)
