"""Read schemas from files, from a directory used as a registry, and compile .proto files with protoc.

A schema is given as text or as a file: a `Path`, or text that ends in .avsc, .proto or .desc (a descriptor set written
by protoc). Imports of a .proto are in the same directory or in its references.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from millbeck.pipeline.errors import SchemaError, UnknownSchema
from millbeck.pipeline.formats.schemas import AVRO, PROTOBUF, RegisteredSchema, Schema

_ENDINGS: Final = {AVRO: (".avsc",), PROTOBUF: (".proto", ".desc")}
_COMPILE_SECONDS_MAX: Final = 60.0
_COMPILED_MAX: Final = 256
_HEXADECIMAL: Final = re.compile(r"(?:[0-9a-f]{2})+")
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


@lru_cache(maxsize=_COMPILED_MAX)
def compiled_proto(schema: Schema, file: str = "schema.proto") -> bytes:
    """The descriptor set of a .proto and its imports, in order of import; raises `SchemaError`."""
    if schema.kind != PROTOBUF:
        raise SchemaError(f"the schema is {schema.kind}, not {PROTOBUF}")
    if _HEXADECIMAL.fullmatch(schema.text):
        return bytes.fromhex(schema.text)
    with tempfile.TemporaryDirectory(prefix="millbeck-proto-") as folder:
        texts = {**dict(schema.references), file: schema.text}
        for name, text in texts.items():
            path = (Path(folder) / name).resolve()
            if Path(folder).resolve() not in path.parents:
                raise SchemaError(f"the schema refers to {name}, which is not a valid import name")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        made = Path(folder) / "made.desc"
        command = [_protoc(), f"-I{folder}", "--include_imports", f"--descriptor_set_out={made}", file]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=_COMPILE_SECONDS_MAX)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise SchemaError(f"protoc cannot be started: {error}") from error
        if said.returncode != 0:
            raise SchemaError(
                f"the schema is not valid Protobuf: {said.stderr.strip().replace(f'{folder}/', '')[:500]}"
            )
        return made.read_bytes()


def _protoc() -> str:
    # pip installs protoc beside the running Python; prefer that one to the PATH.
    found = shutil.which("protoc", path=str(Path(sys.executable).parent)) or shutil.which("protoc")
    if found is None:
        raise SchemaError("protoc, which .proto schemas need, is missing: pip install 'millbeck[spark]' includes it")
    return found
