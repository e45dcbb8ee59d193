"""Layout of a message at one version, for both generators: its fields, their encoding, minimum size and object
count."""

from __future__ import annotations

from typing import Any

from millbeck.wire.errors import SchemaError
from millbeck.wire.schema import Array, Field, Primitive, Schema, schema_of

TAGS_MAX = 1024
"""Maximum entries in one tagged section; Kafka has messages with six."""


FEW = 8
"""Arrays of fewer numbers than this use precompiled formats."""


class VersionLayout:
    """A message class at one version: determines how its fields and structs are encoded."""

    __slots__ = ("flexible", "version")

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible

    def is_compact(self, field: Field) -> bool:
        """Whether lengths of this field are varints; a field may override its message."""
        return self.flexible if field.flexible is None else self.version in field.flexible

    def is_tagged(self, field: Field) -> bool:
        """Whether this field is in the tagged section.

        There, a nullable struct starts with 0 for null, elsewhere with -1; 1 means that it follows.
        """
        return self.flexible and self.version in field.tagged

    def plain_fields(self, cls: type[Any]) -> list[Field]:
        """The fields outside the tagged section, in order."""
        return [
            field for field in schema_of(cls).fields if self.version in field.versions and not self.is_tagged(field)
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
        """Minimum encoded size of a struct; a count that would need more than the remaining bytes is rejected before a
        loop."""
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
        """The struct format of a class with only fixed-width fields and no tagged section, else None."""
        fields = self.plain_fields(cls)
        if self.flexible or not fields:
            return None
        letters = [field.type.format if isinstance(field.type, Primitive) else "" for field in fields]
        return "".join(letters) if all(letters) else None

    def object_count(self, element: Primitive | type[Any]) -> int:
        """Approximate number of objects per element, without the elements of its own arrays."""
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
    """Size of the length prefix in the legacy encoding."""
    return 2 if primitive.name == "string" else 4


def shape_of(schema: Schema, version: int) -> VersionLayout:
    if version not in schema.versions:
        low, high = schema.versions
        raise SchemaError(f"{schema.name} has versions {low} to {high}, not {version}")
    return VersionLayout(version, schema.is_flexible(version))
