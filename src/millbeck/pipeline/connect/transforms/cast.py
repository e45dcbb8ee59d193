"""Cast: fields, or the whole key or value, to another type."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar, Final

from millbeck.pipeline.connect.config.checks import parsed_by
from millbeck.pipeline.connect.config.definitions import LIST, ConfigDef, ConfigKey, Importance
from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.logical import TEMPORAL, Instant, stored_number
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits, float_of, whole_part, wrapped
from millbeck.pipeline.connect.model.record import ConnectRecord
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType
from millbeck.pipeline.connect.model.struct import Struct, java_class, type_of
from millbeck.pipeline.connect.model.values import date_format_of, integer_from, plain_text
from millbeck.pipeline.connect.transforms.base import REPLACE_NULL_WITH_DEFAULT, SidedTransformation

_NESTED: Final = (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT)
_TARGETS: Final = tuple(kind for kind in SchemaType if kind not in (*_NESTED, SchemaType.BYTES))
_SOURCES: Final = tuple(kind for kind in SchemaType if kind not in _NESTED)
_WHOLE: Final[Mapping[SchemaType, tuple[int, Callable[[int], int]]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}
_INT_BITS: Final = 32


def parsed_casts(entries: tuple[str, ...]) -> dict[str | None, SchemaType]:
    """The target type by field; None is the whole value. Raises ValueError."""
    if not entries:
        raise ValueError("Must specify at least one field to cast.")
    casts: dict[str | None, SchemaType] = {}
    for entry in entries:
        field, separator, name = entry.rpartition(":")
        if ":" in field:
            raise ValueError(f"Invalid rename mapping: {entry}")
        casts[field.strip() if separator else None] = _target(name.strip())
    if None in casts and len(entries) > 1:
        raise ValueError(
            "Cast transformations that specify a type to cast the entire value to "
            "may only specify a single cast in their spec"
        )
    return casts


def _target(name: str) -> SchemaType:
    kind = SchemaType.__members__.get(name.upper())
    if kind is None:
        raise ValueError(f"Invalid type found in casting spec: {name}")
    if kind not in _TARGETS:
        raise ValueError(
            f"Cast transformation does not support casting to {kind.name}; supported types are {_listed(_TARGETS)}"
        )
    return kind


def _listed(kinds: tuple[SchemaType, ...]) -> str:
    return f"[{', '.join(kind.name for kind in kinds)}]"


class Cast(SidedTransformation):
    """Numbers, booleans and texts to any of each other; bytes to text in base64."""

    purpose = "cast types"
    config_def: ClassVar = ConfigDef(
        ConfigKey(
            name="spec",
            kind=LIST,
            check=parsed_by(
                parsed_casts, "list of colon-delimited pairs, e.g. <code>foo:bar,abc:xyz</code>", is_whole_message=True
            ),
            importance=Importance.HIGH,
            doc="Fields and types, as field1:int32,field2:string, or one type for the whole value. The types are int8,"
            " int16, int32, int64, float32, float64, boolean and string.",
        ),
        REPLACE_NULL_WITH_DEFAULT,
    )

    def configure(self, values: Mapping[str, Any]) -> None:
        self._casts = parsed_casts(values["spec"])
        self._whole = self._casts.get(None)

    def without_schema(self, record: ConnectRecord, value: Any) -> ConnectRecord:
        if self._whole is not None:
            return self.side.changed(record, None, cast(None, value, self._whole))
        changed = dict(self.required_dict(value))
        for name, kind in self._casts.items():
            if name is not None:
                changed[name] = cast(None, changed.get(name), kind)
        return self.side.changed(record, None, changed)

    def with_schema(self, record: ConnectRecord, schema: Schema, value: Any) -> ConnectRecord:
        updated = self.changed_schema(schema, self._updated)
        if self._whole is not None:
            return self.side.changed(record, updated, cast(schema, value, self._whole))
        before = self.required_struct(value)
        after = Struct(updated)
        for field in before.schema.fields:
            found = self.read(before, field.name)
            kind = self._casts.get(field.name)
            after[field.name] = found if kind is None else cast(field.schema, found, kind)
        return self.side.changed(record, updated, after)

    def _updated(self, schema: Schema) -> Schema:
        if self._whole is not None:
            made = Schema(self._whole).with_basics_of(schema)
        else:
            if schema.type is not SchemaType.STRUCT:
                raise InvalidValue("Cannot list fields on non-struct type")
            made = schema.with_fields(self._updated_field(field) for field in schema.fields)
        made = replace(made, optional=schema.optional)
        return made if schema.default is None else replace(made, default=cast(schema, schema.default, made.type))

    def _updated_field(self, field: Field) -> Field:
        kind = self._casts.get(field.name)
        if kind is None:
            return field
        default = None if field.schema.default is None else cast(field.schema, field.schema.default, kind)
        return Field(field.name, Schema(kind, optional=field.schema.optional, default=default))


def cast(schema: Schema | None, value: Any, target: SchemaType) -> Any:
    """A value as another type: numbers lose what does not fit, texts must be numbers. Raises `InvalidValue`."""
    if value is None:
        return None
    kind = type_of(value) if schema is None else schema.type
    if kind is None:
        raise InvalidValue(
            f"Cast transformation was passed a value of type class {java_class(value)}"
            " which is not supported by Connect's data API"
        )
    if kind not in _SOURCES:
        raise InvalidValue(
            f"Cast transformation does not support casting from {kind.name}; supported types are {_listed(_SOURCES)}"
        )
    if target is SchemaType.STRING:
        return _text(value, kind)
    if schema is not None and schema.name in TEMPORAL and isinstance(value, Instant):
        value = stored_number(schema, value)
    if isinstance(value, bool):
        return _number(int(value), target)
    if isinstance(value, (int, float, Decimal)):
        return _number(value, target)
    if isinstance(value, str):
        try:
            return _of_text(value, target)
        except ValueError:
            raise InvalidValue(f"Value ({value}) was out of range for requested data type") from None
    raise InvalidValue(f"Unexpected type in Cast transformation: class {java_class(value)}")


def _text(value: Any, kind: SchemaType) -> str:
    if isinstance(value, Instant):
        return date_format_of(value).format(value.milliseconds)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode()
    return plain_text(Float32(value) if kind is SchemaType.FLOAT32 else value)


def _number(value: int | float | Decimal, target: SchemaType) -> Any:
    if target in _WHOLE:
        bits, number = _WHOLE[target]
        if isinstance(value, int):
            return number(wrapped(value, bits))
        # Java takes a float to 8 or 16 bits by way of 32.
        return number(wrapped(whole_part(value, max(bits, _INT_BITS)), bits))
    if target is SchemaType.BOOLEAN:
        return (value if isinstance(value, int) else whole_part(value, 64)) != 0
    as_float = float_of(value) if isinstance(value, Decimal) else float(value)
    return Float32(as_float) if target is SchemaType.FLOAT32 else as_float


def _of_text(text: str, target: SchemaType) -> Any:
    if target in _WHOLE:
        bits, number = _WHOLE[target]
        value = integer_from(text)
        if not fits(value, bits):
            raise ValueError("out of range")
        return number(value)
    if target is SchemaType.BOOLEAN:
        return text.lower() == "true"
    return _float_of_text(text, target)


def _float_of_text(text: str, target: SchemaType) -> float:
    """Java's ``Double.parseDouble``: blanks around, a trailing f or d, NaN and Infinity by these names alone."""
    stripped = text.strip()
    unsigned = stripped[1:] if stripped[:1] in ("+", "-") else stripped
    if unsigned not in ("NaN", "Infinity"):
        if unsigned[-1:] in ("f", "F", "d", "D"):
            stripped, unsigned = stripped[:-1], unsigned[:-1]
        if not unsigned[:1].isascii() or unsigned[:1] not in "0123456789." or "_" in unsigned or not unsigned:
            raise ValueError("not a number")
    found = float(stripped)
    return Float32(found) if target is SchemaType.FLOAT32 else found
