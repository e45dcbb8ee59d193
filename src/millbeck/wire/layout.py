"""What both generators ask about a declaration at one version: which fields, in which form, how small, how many."""

from __future__ import annotations

from typing import Any

from millbeck.wire.errors import SchemaError
from millbeck.wire.schema import Array, Field, Primitive, Schema, schema_of

TAGS_MAX = 1024
"""Entries in one tagged section; Kafka has messages with six."""


FEW = 8
"""Arrays of fewer numbers than this are packed and unpacked by formats compiled beforehand."""


class Shape:
    """A message's class at one version: the context in which its fields and structs are laid out."""

    __slots__ = ("flexible", "version")

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible

    def is_compact(self, field: Field) -> bool:
        """Whether lengths of this field are varints; a field may differ from its message."""
        return self.flexible if field.flexible is None else self.version in field.flexible

    def plain_fields(self, cls: type[Any]) -> list[Field]:
        """The fields written one after another, in order."""
        return [
            field
            for field in schema_of(cls).fields
            if self.version in field.versions and not (self.flexible and self.version in field.tagged)
        ]

    def tagged_fields(self, cls: type[Any]) -> list[Field]:
        """The fields of the tagged section, by tag."""
        if not self.flexible:
            return []
        found = [
            field
            for field in schema_of(cls).fields
            if self.version in field.versions and self.version in field.tagged and field.tag is not None
        ]
        return sorted(found, key=lambda field: field.tag or 0)

    def absent_fields(self, cls: type[Any]) -> list[Field]:
        return [field for field in schema_of(cls).fields if self.version not in field.versions]

    def size_min(self, cls: type[Any]) -> int:
        """The fewest bytes a struct takes; a count that asks for more than is left is refused before any loop."""
        return sum(self._field_size_min(field) for field in self.plain_fields(cls)) + (1 if self.flexible else 0)

    def element_size_min(self, element: Primitive | type[Any], compact: bool) -> int:
        if not isinstance(element, Primitive):
            return max(1, self.size_min(element))
        if element.format:
            return element.size
        return 1 if compact else length_size(element)

    def _field_size_min(self, field: Field) -> int:
        compact = self.is_compact(field)
        if isinstance(field.type, Array):
            return 1 if compact else 4
        if isinstance(field.type, Primitive):
            return self.element_size_min(field.type, compact)
        return 1 if self.version in field.nullable else self.size_min(field.type)

    def fixed_format(self, cls: type[Any]) -> str | None:
        """The struct format of a class whose every field has a fixed width and that has no tagged section."""
        fields = self.plain_fields(cls)
        if self.flexible or not fields:
            return None
        letters = [field.type.format if isinstance(field.type, Primitive) else "" for field in fields]
        return "".join(letters) if all(letters) else None

    def object_count(self, element: Primitive | type[Any]) -> int:
        """About how many small objects one element becomes, its lists' own elements apart."""
        if isinstance(element, Primitive):
            return 1
        count = 1
        fixed_count = 0
        for field in schema_of(element).fields:
            if self.version not in field.versions:
                continue
            if isinstance(field.type, Primitive):
                if field.type.format:
                    fixed_count += 1
                else:
                    count += 1
            elif isinstance(field.type, Array):
                count += 1
            else:
                count += self.object_count(field.type)
        return count + fixed_count // 4


def length_size(primitive: Primitive) -> int:
    """Bytes of the length prefix outside flexible versions."""
    return 2 if primitive.name == "string" else 4


def shape_of(schema: Schema, version: int) -> Shape:
    if version not in schema.versions:
        low, high = schema.versions
        raise SchemaError(f"{schema.name} has versions {low} to {high}, not {version}")
    return Shape(version, schema.is_flexible(version))
