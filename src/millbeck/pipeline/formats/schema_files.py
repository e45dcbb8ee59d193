"""Read schemas from files, from a directory used as a registry, and compile .proto files with protoc.

A schema is given as text or as a file: a `Path`, or text that ends in .avsc, .proto or .desc (a descriptor set written
by protoc). Imports of a .proto are in the same directory or in its references.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from millbeck.client.schemas.descriptors import descriptor_set
from millbeck.client.schemas.errors import SchemaError as ClientSchemaError
from millbeck.client.schemas.model import AVRO, PROTOBUF, RegisteredSchema, Schema
from millbeck.pipeline.errors import SchemaError, UnknownSchema

_ENDINGS: Final = {AVRO: (".avsc",), PROTOBUF: (".proto", ".desc")}
_MESSAGE_LENGTH_MAX: Final = 600
_INDEX: Final = "subjects.json"

SchemaGiven = str | Path | Mapping[str, Any] | Schema
"""A schema as text, a file, a dictionary (Avro), or a parsed schema."""


def read_schema(kind: str, given: SchemaGiven) -> Schema:
    """Read a schema. Raises `SchemaError` naming the file."""
    if isinstance(given, Schema):
        if given.kind != kind:
            raise SchemaError(f"the schema is {given.kind}, not {kind}")
        return given
    if isinstance(given, Mapping):
        return Schema(kind, json.dumps(given))
    if isinstance(given, str) and not ("\n" not in given and given.strip().endswith(_ENDINGS[kind])):
        return Schema(kind, given)
    path = Path(given)
    try:
        if path.suffix == ".desc":
            return Schema(kind, path.read_bytes().hex())
        text = path.read_text(encoding="utf-8")
        beside = tuple(
            (other.relative_to(path.parent).as_posix(), other.read_text(encoding="utf-8"))
            for other in sorted(path.parent.rglob("*.proto"))
            if kind == PROTOBUF and "import" in text and other != path
        )
    except (OSError, UnicodeDecodeError) as error:
        raise SchemaError(f"the schema {path} cannot be read: {error}") from error
    return Schema(kind, text, beside)


class DirectorySchemas:
    """A directory used as a registry, for tests and for schemas kept in a repository.

    ``7.json`` holds the schema with the id 7, ``subjects.json`` the ids of each subject, oldest first.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder).absolute()

    @property
    def name(self) -> str:
        return str(self._folder)

    def by_id(self, schema_id: int) -> Schema:
        read = self._read(f"{schema_id}.json")
        if read is None:
            raise UnknownSchema(f"no schema has the id {schema_id} in {self._folder}")
        return Schema(read["kind"], read["text"], tuple(read.get("references", {}).items()))

    def latest(self, subject: str) -> RegisteredSchema:
        ids = (self._read(_INDEX) or {}).get(subject)
        if not ids:
            raise UnknownSchema(f"there is no schema for {subject} in {self._folder}")
        return RegisteredSchema(ids[-1], self.by_id(ids[-1]))

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema:
        ids = (self._read(_INDEX) or {}).get(subject, ())
        found = next((each for each in ids if self.by_id(each) == schema), None)
        if found is None:
            raise UnknownSchema(f"subject {subject} in {self._folder} does not have this schema")
        return RegisteredSchema(found, schema)

    def register(self, subject: str, schema: Schema) -> int:
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / ".lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return self._register(subject, schema)

    def _register(self, subject: str, schema: Schema) -> int:
        subjects = self._read(_INDEX) or {}
        schema_id = 1
        while (self._folder / f"{schema_id}.json").exists() and self.by_id(schema_id) != schema:
            schema_id += 1
        if not (self._folder / f"{schema_id}.json").exists():
            kept = {"kind": schema.kind, "text": schema.text, "references": dict(schema.references)}
            self._write(f"{schema_id}.json", kept)
        if schema_id not in subjects.setdefault(subject, []):
            subjects[subject].append(schema_id)
            self._write(_INDEX, subjects)
        return schema_id

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self._folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise SchemaError(f"{self._folder / name} cannot be read: {error}") from error

    def _write(self, name: str, kept: Any) -> None:
        # Write to a temporary file and rename it: another worker may be reading.
        fresh = self._folder / f".{name}.{os.getpid()}"
        fresh.write_text(json.dumps(kept, indent=1), encoding="utf-8")
        fresh.replace(self._folder / name)


def compiled_proto(schema: Schema) -> bytes:
    """The descriptor set of a Protobuf schema and its imports, in order of import; raises `SchemaError`."""
    try:
        return descriptor_set(schema)
    except ClientSchemaError as error:
        raise SchemaError(f"the schema is not valid Protobuf: {error}"[:_MESSAGE_LENGTH_MAX]) from error
