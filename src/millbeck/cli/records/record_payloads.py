"""Decode keys and values of records for display: text, hex, or the fields of records of internal topics.

A decoder takes a record's key and value and returns the text for each, None where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import Struct
from typing import Any

Shown = tuple[object, object]
Decoder = Callable[[bytes | None, bytes | None], Shown]

_INT16 = Struct(">h")
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def as_text(payload: bytes | None) -> str | None:
    """UTF-8 text if valid; other bytes as escapes, so that no byte is lost."""
    return None if payload is None else payload.decode("utf-8", "backslashreplace")


def plain(key: bytes | None, value: bytes | None) -> Shown:
    return as_text(key), as_text(value)


def group_record(key: bytes | None, value: bytes | None) -> Shown:
    """Decode a record of ``__consumer_offsets``."""
    from millbeck.coordinator.group.records import decode
    from millbeck.wire.errors import DecodeError

    try:
        found = None if key is None else decode(key, value)
    except DecodeError as error:
        return f"<unreadable: {error}>", as_text(value)
    if found is None or key is None:
        return "<unknown type>", None
    shown_key = {"type": str(_INT16.unpack_from(key)[0]), "data": fields_of(found.key)}
    if found.value is None or value is None:
        return shown_key, None
    return shown_key, {"version": str(_INT16.unpack_from(value)[0]), "data": fields_of(found.value)}


def metadata_record(key: bytes | None, value: bytes | None) -> Shown:
    """Decode a record of ``__cluster_metadata``."""
    from millbeck.metadata.fault import MetadataFault
    from millbeck.metadata.framing import decode
    from millbeck.wire.varint import read_unsigned_varint

    if value is None:
        return None, None
    try:
        record = decode(value)
        _, position = read_unsigned_varint(value, read_unsigned_varint(value, 0)[1])
        version, _ = read_unsigned_varint(value, position)
        name = _WORD_START.sub("_", type(record).__name__).upper()
        return None, {"type": name, "version": version, "data": fields_of(record)}
    except MetadataFault as error:
        return None, f"<unreadable: {error}>"


def control_record(key: bytes | None, value: bytes | None) -> dict[str, object]:
    """The fields of a control record."""
    from dataclasses import asdict

    from millbeck.kernel.errors import CorruptMessage
    from millbeck.records.control import EndTransaction, decode
    from millbeck.records.record import Record

    try:
        found = decode(Record(offset=0, timestamp=0, key=key, value=value))
    except CorruptMessage as error:
        return {"controlRecord": f"<unreadable: {error}>"}
    if isinstance(found, EndTransaction):
        return {
            "endTxnMarker": "COMMIT" if found.committed else "ABORT",
            "coordinatorEpoch": found.coordinator_epoch,
        }
    if found is None:
        return {"controlRecord": "<unknown type>"}
    return {type(found).__name__: _readable(asdict(found))}


def fields_of(message: Any) -> dict[str, object]:
    """A message's fields under Kafka's camelCase names, uuids in base64, bytes as hex.

    As in Kafka's tools, tagged fields with their default value are omitted, as they are in the encoded record.
    """
    from millbeck.kernel.ids import uuid_text
    from millbeck.wire.schema import Array, schema_of

    def shown(value: Any, kind: Any) -> object:
        if value is None:
            return None
        if isinstance(kind, Array):
            return [shown(each, kind.element) for each in value]
        if isinstance(kind, type):
            return fields_of(value)
        if isinstance(value, bytes):
            return uuid_text(value) if kind.name == "uuid" else value.hex()
        return value

    return {
        _camel_case(field.name): shown(value, field.type)
        for field in schema_of(type(message)).fields
        if (value := getattr(message, field.name)) != field.make_default() or field.tag is None
    }


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _readable(value: Any) -> object:
    from millbeck.kernel.ids import uuid_text

    if isinstance(value, dict):
        return {_camel_case(key): _readable(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(each) for each in value]
    if isinstance(value, bytes):
        return uuid_text(value) if len(value) == 16 else value.hex()
    return value
