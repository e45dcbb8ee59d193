"""Structs, and the check of a value against its schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from millbeck.pipeline.connect.errors import InvalidValue
from millbeck.pipeline.connect.model.logical import DECIMAL, TEMPORAL, Instant
from millbeck.pipeline.connect.model.numbers import Float32, Int8, Int16, Int32, fits
from millbeck.pipeline.connect.model.schema import Field, Schema, SchemaType

_WHOLE: Final[Mapping[SchemaType, tuple[int, Callable[[int], int]]]] = {
    SchemaType.INT8: (8, Int8),
    SchemaType.INT16: (16, Int16),
    SchemaType.INT32: (32, Int32),
    SchemaType.INT64: (64, int),
}
_CLASSES: Final[Mapping[SchemaType, tuple[type, ...]]] = {
    SchemaType.STRING: (str,),
    SchemaType.BYTES: (bytes, bytearray, memoryview),
    SchemaType.ARRAY: (list, tuple),
    SchemaType.MAP: (dict,),
    SchemaType.BOOLEAN: (bool,),
}
_JAVA_CLASSES: Final[tuple[tuple[type, str], ...]] = (
    (bool, "java.lang.Boolean"),
    (Int8, "java.lang.Byte"),
    (Int16, "java.lang.Short"),
    (Int32, "java.lang.Integer"),
    (int, "java.lang.Long"),
    (Float32, "java.lang.Float"),
    (float, "java.lang.Double"),
    (str, "java.lang.String"),
    (bytes, "[B"),
    (list, "java.util.ArrayList"),
    (dict, "java.util.HashMap"),
    (Decimal, "java.math.BigDecimal"),
    (Instant, "java.util.Date"),
)


class Struct:
    """Values by field, in the order of the schema's fields. Reading by ``[]`` gives the default for a null."""

    __slots__ = ("schema", "values")

    def __init__(self, schema: Schema) -> None:
        if schema.type is not SchemaType.STRUCT:
            raise InvalidValue(f"Not a struct schema: {schema}")
        self.schema = schema
        self.values: list[Any] = [None] * len(schema.fields)

    @classmethod
    def of(cls, schema: Schema, values: Mapping[str, object]) -> Struct:
        """A struct with these fields; the others are null."""
        made = cls(schema)
        for name, value in values.items():
            made[name] = value
        return made

    def __getitem__(self, name: str) -> Any:
        place = self._place(name)
        value = self.values[place]
        return self.schema.fields[place].schema.default if value is None else value

    def without_default(self, name: str) -> Any:
        return self.values[self._place(name)]

    def read(self, name: str, *, with_default: bool) -> Any:
        return self[name] if with_default else self.without_default(name)

    def __setitem__(self, name: str, value: object) -> None:
        """Raises `InvalidValue` for a value that does not fit the field."""
        place = self._place(name)
        field = self.schema.fields[place]
        self.values[place] = checked(field.schema, value, f'field: "{name}"')

    def _place(self, name: str) -> int:
        place = self.schema.by_name.get(name)
        if place is None:
            raise InvalidValue(f"{name} is not a valid field name")
        return place

    def validate(self) -> None:
        """Raises `InvalidValue` for a field that is null and must not be."""
        for field, value in zip(self.schema.fields, self.values, strict=True):
            if value is None and not field.schema.optional and field.schema.default is None:
                raise _missing(field.schema, f'field: "{field.name}"')

    def items(self) -> list[tuple[Field, Any]]:
        """Each field with its value, nulls as nulls."""
        return list(zip(self.schema.fields, self.values, strict=True))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Struct) and self.schema == other.schema and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ",".join(f"{field.name}={value!r}" for field, value in self.items() if value is not None)
        return f"Struct{{{shown}}}"


def checked(schema: Schema, value: object, location: str = "value") -> Any:
    """The value as the schema has it: plain numbers take the schema's width. Raises `InvalidValue`."""
    if value is None:
        if not schema.optional:
            raise _missing(schema, location)
        return None
    if schema.name == DECIMAL or schema.name in TEMPORAL:
        if isinstance(value, Decimal if schema.name == DECIMAL else Instant):
            return value
        raise _misfit(schema, value, location)
    if schema.type in _WHOLE:
        bits, number = _WHOLE[schema.type]
        if isinstance(value, int) and not isinstance(value, bool) and fits(value, bits):
            return value if type(value) is number else number(value)
        raise _misfit(schema, value, location)
    return _checked_other(schema, value, location)


def _checked_other(schema: Schema, value: object, location: str) -> Any:
    match schema.type:
        case SchemaType.FLOAT32 | SchemaType.FLOAT64 if isinstance(value, float):
            number = Float32 if schema.type is SchemaType.FLOAT32 else float
            return value if type(value) is number else number(value)
        case SchemaType.STRUCT if isinstance(value, Struct):
            if value.schema is not schema and value.schema != schema:
                raise InvalidValue("Struct schemas do not match.")
            value.validate()
            return value
    if not isinstance(value, _CLASSES.get(schema.type, ())):
        raise _misfit(schema, value, location)
    if isinstance(value, dict):
        key_schema = _known(schema.key_schema, f"key of map {location}")
        value_schema = _known(schema.value_schema, f"value of map {location}")
        return {
            checked(key_schema, key, f"key of map {location}"): checked(value_schema, each, f"value of map {location}")
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        element = _known(schema.value_schema, f"element of array {location}")
        return [checked(element, each, f"element of array {location}") for each in value]
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else value


def _known(schema: Schema | None, location: str) -> Schema:
    if schema is None:
        raise InvalidValue(f"No schema defined for {location}")
    return schema


def _missing(schema: Schema, location: str) -> InvalidValue:
    return InvalidValue(f"Invalid value: null used for required {location}, schema type: {schema.type.name}")


def _misfit(schema: Schema, value: object, location: str) -> InvalidValue:
    name = f' "{schema.name}"' if schema.name else ""
    return InvalidValue(
        f"Invalid Java object for schema{name} with type {schema.type.name}: class {java_class(value)} for {location}"
    )


def java_class(value: object) -> str:
    """The name of a value's class in Kafka's messages."""
    if value is None:
        return "null"
    if isinstance(value, Struct):
        return "org.apache.kafka.connect.data.Struct"
    return next((name for known, name in _JAVA_CLASSES if isinstance(value, known)), type(value).__name__)


def type_of(value: object) -> SchemaType | None:
    """The type that a value has without a schema; None when it has none."""
    match value:
        case bool():
            return SchemaType.BOOLEAN
        case Int8():
            return SchemaType.INT8
        case Int16():
            return SchemaType.INT16
        case Int32():
            return SchemaType.INT32
        case int():
            return SchemaType.INT64
        case Float32():
            return SchemaType.FLOAT32
        case float():
            return SchemaType.FLOAT64
        case str():
            return SchemaType.STRING
        case bytes() | bytearray() | memoryview():
            return SchemaType.BYTES
        case list() | tuple():
            return SchemaType.ARRAY
        case dict():
            return SchemaType.MAP
        case Struct():
            return SchemaType.STRUCT
    return None
