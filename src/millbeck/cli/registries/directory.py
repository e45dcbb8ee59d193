"""A directory of schemas, with one file per subject; the subject is the file's path without the extension.

    schemas/orders-value.avsc           the subject orders-value
    schemas/shop/customer.proto         the subject shop/customer, imported as "shop/customer.proto"

Files refer to each other: a .proto by its imports, Avro by the full names of types, JSON Schema by ``$ref`` to a file.
Pure but for `read`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from millbeck.client.schemas.errors import SchemaError
from millbeck.client.schemas.proto_tokens import ProtoLimits, imports_of

TYPES: Final = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}


class DirectoryError(Exception):
    """A file cannot be read, or files refer to each other in a cycle."""


@dataclass(frozen=True, slots=True)
class SchemaFile:
    subject: str
    kind: str
    text: str
    path: str
    """The path relative to the directory, with slashes."""
    references: tuple[tuple[str, str], ...] = ()
    """The references: for each the name that the schema uses, and the subject."""


def type_of(path: Path) -> str | None:
    """The schema type by the file's extension; None for other files."""
    return TYPES.get(path.suffix)


def read(folder: Path) -> list[SchemaFile]:
    """The schema files of a directory, referenced files first; raises `DirectoryError`."""
    files: list[SchemaFile] = []
    for path in sorted(folder.rglob("*")):
        kind = type_of(path)
        if kind is None or not path.is_file():
            continue
        relative = path.relative_to(folder)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DirectoryError(f"{path}: {error}") from error
        files.append(SchemaFile(relative.with_suffix("").as_posix(), kind, text, relative.as_posix()))
    if not files:
        raise DirectoryError(f"{folder} has no schemas: files that end in {', '.join(TYPES)}")
    return ordered(files)


def ordered(files: list[SchemaFile]) -> list[SchemaFile]:
    """Find the references of the files, and return them in an order in which they can be registered."""
    subjects = [each.subject for each in files]
    twice = next((name for name in subjects if subjects.count(name) > 1), None)
    if twice is not None:
        raise DirectoryError(f"two files have the subject {twice}")
    named = {name: each.subject for each in files for name in _names(each)}
    found = {each.subject: replace(each, references=_references(each, named)) for each in files}
    done: dict[str, SchemaFile] = {}
    for each in found.values():
        _add(each, found, done, ())
    return list(done.values())


def _add(file: SchemaFile, files: dict[str, SchemaFile], done: dict[str, SchemaFile], around: tuple[str, ...]) -> None:
    if file.subject in around:
        raise DirectoryError(f"files refer to each other in a cycle: {' → '.join((*around, file.subject))}")
    if file.subject in done:
        return
    for _, subject in file.references:
        _add(files[subject], files, done, (*around, file.subject))
    done[file.subject] = file


def _names(file: SchemaFile) -> list[str]:
    """The names by which other files may refer to this file."""
    if file.kind != "AVRO":
        return [file.path]
    root = _loaded(file)
    if not isinstance(root, dict) or not isinstance(root.get("name"), str):
        return []
    name, space = root["name"], root.get("namespace")
    return [f"{space}.{name}" if space and "." not in name else name]


def _references(file: SchemaFile, named: dict[str, str]) -> tuple[tuple[str, str], ...]:
    wanted = _imports(file) if file.kind == "PROTOBUF" else _mentioned(_loaded(file), file.kind)
    own = _names(file)
    return tuple((name, named[name]) for name in dict.fromkeys(wanted) if name in named and name not in own)


def _imports(file: SchemaFile) -> list[str]:
    try:
        return imports_of(file.text, ProtoLimits())
    except SchemaError as error:
        raise DirectoryError(f"{file.path}: {error}") from None


def _mentioned(value: Any, kind: str, space: str = "") -> list[str]:
    """The strings in a schema that may be references to others, for Avro also with the enclosing namespace."""
    found: list[str] = []
    pending: list[tuple[Any, str]] = [(value, space)]
    while pending:
        node, around = pending.pop()
        if isinstance(node, str) and kind == "AVRO":
            found += [node, f"{around}.{node}"]
        elif isinstance(node, dict):
            inner = node.get("namespace") or str(node.get("name", "")).rpartition(".")[0] or around
            if kind == "JSON" and isinstance(node.get("$ref"), str):
                found.append(node["$ref"].partition("#")[0])
            pending += [(each, str(inner)) for each in node.values()]
        elif isinstance(node, list):
            pending += [(each, around) for each in node]
    return found


def _loaded(file: SchemaFile) -> Any:
    try:
        return json.loads(file.text)
    except (ValueError, RecursionError) as error:
        raise DirectoryError(f"{file.path}: not JSON: {error}") from None
