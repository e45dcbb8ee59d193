"""Needs fastavro: decode Avro records to plain values and encode them.

Values are dictionaries, lists, numbers, strings and bytes; times and dates stay integers as in Avro, since Arrow
converts whole columns of them (`columns`). Decimals are `Decimal`. Unions whose members cannot be distinguished, and
recursive schemas, cannot be mapped to columns and are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from typing import Any, Final

import fastavro

from millbeck.client.schemas.model import AVRO, Schema
from millbeck.pipeline.errors import BadRecord, SchemaError

_PARSED_MAX: Final = 256
_KEPT_LOGICAL: Final = "decimal"
_WHOLE: Final = ("int", "long")
_FRACTIONAL: Final = ("float", "double")
_FAMILIES: Final = {
    "boolean": bool,
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "enum": str,
    "bytes": bytes,
    "fixed": bytes,
    "array": list,
    "map": dict,
    "record": dict,
}
"""The Python type of a value by Avro type."""


@dataclass(frozen=True, slots=True)
class AvroSchema:
    """A parsed Avro schema: ``shape`` has all type names replaced by their definitions; ``plain`` is the schema that
    fastavro uses."""

    shape: Any
    plain: Any


@lru_cache(maxsize=_PARSED_MAX)
def parsed(schema: Schema) -> AvroSchema:
    """Parse an Avro schema. Raises `SchemaError`."""
    if schema.kind != AVRO:
        raise SchemaError(f"the schema is {schema.kind}, not {AVRO}")
    whole, names = _parsed(schema, lambda read: read)
    plain, _ = _parsed(schema, _without_logical)
    return AvroSchema(_written_out(whole, names, ()), plain)


def _parsed(schema: Schema, change: Callable[[Any], Any]) -> tuple[Any, dict[str, Any]]:
    names: dict[str, Any] = {}
    try:
        for _, text in schema.references:
            fastavro.parse_schema(change(json.loads(text)), named_schemas=names)
        return fastavro.parse_schema(change(json.loads(schema.text)), named_schemas=names), names
    except Exception as error:  # fastavro raises arbitrary exceptions
        raise SchemaError(f"the schema is not valid Avro: {type(error).__name__}: {error}"[:500]) from error


def _without_logical(read: Any) -> Any:
    """Read times, dates and uuids as the underlying numbers and strings; decimals stay."""
    if isinstance(read, list):
        return [_without_logical(each) for each in read]
    if not isinstance(read, dict):
        return read
    kept = {name: value for name, value in read.items() if name != "logicalType" or value == _KEPT_LOGICAL}
    return {
        name: _without_logical(value) if name in ("type", "fields", "items", "values") else value
        for name, value in kept.items()
    }


def _written_out(schema: Any, names: Mapping[str, Any], around: tuple[str, ...]) -> Any:
    if isinstance(schema, str):
        if schema in _FAMILIES or schema == "null":
            return schema
        return _written_out(names[schema], names, around)
    if isinstance(schema, list):
        return [_written_out(branch, names, around) for branch in schema]
    kind = schema["type"]
    if kind == "record" or kind == "error":
        if schema["name"] in around:
            raise SchemaError(f"the schema's {schema['name']} is recursive, which columns cannot represent")
        inner = (*around, schema["name"])
        fields = [{**field, "type": _written_out(field["type"], names, inner)} for field in schema["fields"]]
        return {"type": "record", "name": schema["name"], "fields": fields}
    if kind in ("array", "map"):
        held = "items" if kind == "array" else "values"
        return {"type": kind, held: _sized(_written_out(schema[held], names, around))}
    return schema if isinstance(kind, str) else _written_out(kind, names, around)


def _sized(schema: Any) -> Any:
    """Refuse items of zero size, since a record of ten bytes could declare an array of a billion of them."""
    if schema == "null" or (isinstance(schema, dict) and schema["type"] == "record" and not schema["fields"]):
        raise SchemaError("the schema has an array or a map of items without content")
    return schema


def branches(union: list[Any]) -> list[Any]:
    """The members of a union except null; of two widths of one numeric type only the wider one."""
    found: list[Any] = []
    for branch in union:
        if branch == "null":
            continue
        pair = next((pair for pair in (_WHOLE, _FRACTIONAL) if branch in pair and any(x in pair for x in found)), None)
        if pair is None:
            found.append(branch)
        else:
            found[next(place for place, other in enumerate(found) if other in pair)] = pair[1]
    families = [family(branch) for branch in found]
    if len(set(families)) < len(families):
        raise SchemaError(f"the schema has a union whose members cannot be distinguished: {json.dumps(union)[:200]}")
    return found


def family(schema: Any) -> type:
    if isinstance(schema, dict) and schema.get("logicalType") == _KEPT_LOGICAL:
        return object
    return _FAMILIES[schema if isinstance(schema, str) else schema["type"]]


Change = Callable[[Any], Any]


def _changed_parts(schema: Any, change: Callable[[Any], Change | None]) -> Change | None:
    """``change`` applied to the parts of a record, array or map; None if nothing changes."""
    if isinstance(schema, str) or schema["type"] not in ("record", "array", "map"):
        return None
    if schema["type"] == "record":
        changes = {field["name"]: change(field["type"]) for field in schema["fields"]}
        needed = {name: one for name, one in changes.items() if one is not None}
        if not needed:
            return None
        return lambda value: {**value, **{name: one(value[name]) for name, one in needed.items()}}
    inner = change(schema["items" if schema["type"] == "array" else "values"])
    if inner is None:
        return None
    if schema["type"] == "array":
        return lambda value: [inner(each) for each in value]
    return lambda value: {key: inner(each) for key, each in value.items()}


def _union_to_members(schema: Any) -> Change | None:
    """Values of a union of several types become ``{"member0": …, "member1": …}``, as in Spark."""
    if not isinstance(schema, list):
        return _changed_parts(schema, _union_to_members)
    held = branches(schema)
    changes = [_union_to_members(branch) for branch in held]
    if len(held) == 1:
        return None if changes[0] is None else _unless_none(changes[0])
    kinds = [family(branch) for branch in held]

    def members(value: Any) -> Any:
        if value is None:
            return None
        place = kinds.index(type(value)) if type(value) in kinds else kinds.index(object)
        change = changes[place]
        return {f"member{place}": value if change is None else change(value)}

    return members


def _members_to_union(schema: Any) -> Change | None:
    if not isinstance(schema, list):
        return _changed_parts(schema, _members_to_union)
    held = branches(schema)
    changes = [_members_to_union(branch) for branch in held]
    if len(held) == 1:
        return None if changes[0] is None else _unless_none(changes[0])

    def union(value: Any) -> Any:
        for place, change in enumerate(changes):
            member = None if value is None else value[f"member{place}"]
            if member is not None:
                return member if change is None else change(member)
        return None

    return union


def _unless_none(change: Change) -> Change:
    return lambda value: None if value is None else change(value)


class AvroReader:
    """Decodes records of a writer's schema, resolved to the reader's schema."""

    def __init__(self, reader: AvroSchema, writer: AvroSchema | None = None) -> None:
        self._reader = reader.plain
        self._writer = reader.plain if writer is None else writer.plain
        self._change = _union_to_members(reader.shape)

    def read(self, record: bytes) -> Any:
        """Decode one record. Raises `BadRecord`."""
        stream = BytesIO(record)
        try:
            value = fastavro.schemaless_reader(stream, self._writer, self._reader)
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise BadRecord(f"{type(error).__name__}: {error}"[:200]) from error
        if stream.tell() != len(record):
            raise BadRecord(f"{len(record) - stream.tell()} of its {len(record)} bytes are left over")
        return value if self._change is None else self._change(value)


class AvroWriter:
    def __init__(self, schema: AvroSchema) -> None:
        self._schema = schema.plain
        self._change = _members_to_union(schema.shape)

    def write(self, value: Any) -> bytes:
        """Encode one record. Raises `BadRecord`."""
        stream = BytesIO()
        try:
            fastavro.schemaless_writer(stream, self._schema, value if self._change is None else self._change(value))
        except Exception as error:  # fastavro raises arbitrary exceptions
            raise BadRecord(f"{type(error).__name__}: {error}"[:200]) from error
        return stream.getvalue()
