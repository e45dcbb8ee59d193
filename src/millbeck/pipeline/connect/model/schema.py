"""Connect's schemas: the type of a key, a value or a header, with name, version, default and so on.

A schema is immutable. Two are equal when everything about them is, which is how a struct is checked against the schema
that it is written with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from millbeck.pipeline.connect.errors import InvalidValue, SchemaError


class SchemaType(Enum):
    """The value is the type's name in JSON of Kafka's own tools, but for the two floats."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct."""

    name: str
    schema: Schema


@dataclass(frozen=True)
class Schema:
    """The schema of values. ``default`` is returned for null."""

    type: SchemaType
    optional: bool = False
    default: object = None
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] | None = None
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    @cached_property
    def by_name(self) -> dict[str, int]:
        """The place of each field."""
        return {field.name: place for place, field in enumerate(self.fields)}

    @cached_property
    def _hash(self) -> int:
        return hash(
            (self.type, self.optional, self.name, self.version, self.fields, self.key_schema, self.value_schema)
        )

    def __hash__(self) -> int:
        return self._hash

    def field(self, name: str) -> Field | None:
        if self.type is not SchemaType.STRUCT:
            raise InvalidValue("Cannot look up fields on non-struct type")
        place = self.by_name.get(name)
        return None if place is None else self.fields[place]

    def with_fields(self, fields: Iterable[Field], *, optional: bool = False, default: object = None) -> Schema:
        """A struct of other fields with this one's name, version, doc and parameters. It is required and has no default
        unless given.
        """
        return struct_schema(fields, optional=optional, default=default, basis=self)

    def with_basics_of(self, source: Schema) -> Schema:
        """This schema with another one's name, version, doc and parameters."""
        return replace(
            self, name=source.name, version=source.version, doc=source.doc, parameters=source.parameters or None
        )

    def __str__(self) -> str:
        return f"Schema{{{f'{self.name}:' if self.name else ''}{self.type.name}}}"


def struct_schema(
    fields: Iterable[Field], *, optional: bool = False, default: object = None, basis: Schema | None = None
) -> Schema:
    """A struct; ``basis`` gives name, version, doc and parameters. Raises `SchemaError` for a field named twice."""
    given = tuple(fields)
    seen: set[str] = set()
    for field in given:
        if not field.name:
            raise SchemaError("fieldName cannot be null.")
        if field.name in seen:
            raise SchemaError(f"Cannot create field because of field name duplication {field.name}")
        seen.add(field.name)
    made = Schema(SchemaType.STRUCT, optional=optional, default=default, fields=given)
    return made if basis is None else made.with_basics_of(basis)


def array_schema(element: Schema, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.ARRAY, optional=optional, value_schema=element)


def map_schema(key: Schema, value: Schema, *, optional: bool = False) -> Schema:
    return Schema(SchemaType.MAP, optional=optional, key_schema=key, value_schema=value)


INT8_SCHEMA = Schema(SchemaType.INT8)
INT16_SCHEMA = Schema(SchemaType.INT16)
INT32_SCHEMA = Schema(SchemaType.INT32)
INT64_SCHEMA = Schema(SchemaType.INT64)
FLOAT32_SCHEMA = Schema(SchemaType.FLOAT32)
FLOAT64_SCHEMA = Schema(SchemaType.FLOAT64)
BOOLEAN_SCHEMA = Schema(SchemaType.BOOLEAN)
STRING_SCHEMA = Schema(SchemaType.STRING)
BYTES_SCHEMA = Schema(SchemaType.BYTES)
OPTIONAL_STRING_SCHEMA = Schema(SchemaType.STRING, optional=True)
OPTIONAL_BYTES_SCHEMA = Schema(SchemaType.BYTES, optional=True)
OPTIONAL_BOOLEAN_SCHEMA = Schema(SchemaType.BOOLEAN, optional=True)
OPTIONAL_INT32_SCHEMA = Schema(SchemaType.INT32, optional=True)
OPTIONAL_INT64_SCHEMA = Schema(SchemaType.INT64, optional=True)
