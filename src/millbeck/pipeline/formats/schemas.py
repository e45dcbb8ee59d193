"""A schema, and what a schema registry is asked for: three questions, so that any registry can answer them.

A registry is pickled to Spark's workers, which ask it for the schemas of ids they have not met; what it answers to
`by_id` never changes, so whoever asks keeps it. `MemorySchemas` is for programs that know all their schemas when they
start: a worker has a copy of what was there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol

from millbeck.pipeline.errors import UnknownSchema

AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"
JSON: Final = "JSON"


@dataclass(frozen=True, slots=True)
class Schema:
    """``kind`` is what registries call schemaType; ``references`` are names and texts of what this one imports.

    The text of a Protobuf schema is that of its .proto, or a descriptor set in hexadecimal digits.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    schema_id: int
    schema: Schema


class SchemaRegistry(Protocol):
    """Raises `UnknownSchema` for what it does not know, `SchemaError` for everything else that goes wrong."""

    @property
    def name(self) -> str:
        """Where it is: two of the same name give the same answers."""

    def by_id(self, schema_id: int) -> Schema: ...

    def latest(self, subject: str) -> RegisteredSchema: ...

    def register(self, subject: str, schema: Schema) -> int:
        """The id of the schema under this subject, which is a new one only if it was not there."""


class MemorySchemas:
    """Schemas by id and by subject, kept in this object."""

    def __init__(self, name: str = "memory") -> None:
        self._name = name
        self._by_id: dict[int, Schema] = {}
        self._ids: dict[str, list[int]] = {}

    @property
    def name(self) -> str:
        return self._name

    def by_id(self, schema_id: int) -> Schema:
        found = self._by_id.get(schema_id)
        if found is None:
            raise UnknownSchema(f"no schema has the id {schema_id} in {self._name}")
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        ids = self._ids.get(subject)
        if not ids:
            raise UnknownSchema(f"there is no schema for {subject} in {self._name}")
        return RegisteredSchema(ids[-1], self._by_id[ids[-1]])

    def register(self, subject: str, schema: Schema) -> int:
        # One id for one schema, whatever its subjects are, as registries do it.
        known = next((schema_id for schema_id, other in self._by_id.items() if other == schema), None)
        schema_id = len(self._by_id) + 1 if known is None else known
        self._by_id[schema_id] = schema
        versions = self._ids.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id


def subject_of(topic: str, part: str) -> str:
    """What registries name a schema after unless told otherwise; ``part`` is key or value."""
    return f"{topic}-{part}"
