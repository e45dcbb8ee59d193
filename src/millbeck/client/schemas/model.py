"""A schema, and the interface of a schema registry: four methods, so that any registry can implement it.

A registry is pickled to Spark's workers, which get schemas from it by id. A schema with an id never changes, so callers
cache it. `MemorySchemas` is for programs that know all their schemas at start, since a worker gets a copy of that
state.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

from millbeck.client.schemas.errors import UnknownSchema

AVRO: Final = "AVRO"
PROTOBUF: Final = "PROTOBUF"
JSON: Final = "JSON"
BASE64_TEXT: Final = re.compile(r"[A-Za-z0-9+/\s]+={0,2}\s*\Z")
"""Matches base64, which no .proto does: a Protobuf schema that matches must be a descriptor."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema: ``kind`` is the registry's schemaType; ``references`` are names and texts of imported schemas.

    The text of a Protobuf schema is a .proto file, its descriptor in base64, or a descriptor set in hexadecimal.
    """

    kind: str
    text: str
    references: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RegisteredSchema:
    """A schema with its id and, where they are known, its version and guid."""

    schema_id: int
    schema: Schema
    version: int = 0
    guid: str = ""


class SchemaRegistry(Protocol):
    """The interface of a registry. Its methods raise `UnknownSchema` for an unknown id or subject, `SchemaError` for
    other failures."""

    @property
    def name(self) -> str:
        """The name of the registry, such as its location: registries with the same name return the same schemas."""

    def by_id(self, schema_id: int) -> Schema: ...

    def latest(self, subject: str) -> RegisteredSchema: ...

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        """The registered schema that equals this one."""

    def register(self, subject: str, schema: Schema) -> int:
        """Register the schema under this subject unless it is registered already, and return its id."""


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
            raise UnknownSchema(f"no schema is registered for {subject} in {self._name}")
        return RegisteredSchema(ids[-1], self._by_id[ids[-1]])

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        found = next((each for each in self._ids.get(subject, ()) if self._by_id[each] == schema), None)
        if found is None:
            raise UnknownSchema(f"subject {subject} in {self._name} does not have this schema")
        return RegisteredSchema(found, schema)

    def register(self, subject: str, schema: Schema) -> int:
        # The same schema has one id under all subjects, as in schema registries.
        known = next((schema_id for schema_id, other in self._by_id.items() if other == schema), None)
        schema_id = len(self._by_id) + 1 if known is None else known
        self._by_id[schema_id] = schema
        versions = self._ids.setdefault(subject, [])
        if schema_id not in versions:
            versions.append(schema_id)
        return schema_id


def subject_of(topic: str, part: str) -> str:
    """The default subject (TopicNameStrategy); ``part`` is key or value."""
    return f"{topic}-{part}"
