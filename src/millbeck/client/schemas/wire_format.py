"""The wire format of schema registry clients: a zero byte, the schema id in four bytes, then the record.

Newer clients may put the schema's guid into a header instead: a one byte, then the guid's sixteen bytes.

A Protobuf record starts with the indexes of its message type in the schema: their count and the indexes, as zigzag
varints; the first message alone is written as a single zero.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from millbeck.client.schemas.errors import BadRecord
from millbeck.records.schema_validation import GUID_BYTES, GUID_MAGIC

MAGIC: Final = 0
HEADER_BYTES: Final = 5
INDEXES_MAX: Final = 64
"""The maximum nesting depth of messages; a larger count is invalid."""
_VARINT_BYTES_MAX: Final = 5
_HEADER: Final = struct.Struct(">BI")


def guid_header(guid: str, rest: bytes = b"") -> bytes:
    """The value of the header; for Protobuf ``rest`` is the message indexes."""
    return bytes([GUID_MAGIC]) + bytes.fromhex(guid.replace("-", "")) + rest


def read_header(value: bytes) -> tuple[int | str, bytes]:
    """The id or guid in a header, and the rest; raises `BadRecord`."""
    if value[:1] != bytes([GUID_MAGIC]):
        return unframed(value)
    if len(value) < 1 + GUID_BYTES:
        raise BadRecord(f"the record's header has {len(value)} bytes, too few for the guid of a schema")
    digits = value[1 : 1 + GUID_BYTES].hex()
    guid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return guid, value[1 + GUID_BYTES :]


def framed(schema_id: int, payload: bytes) -> bytes:
    return _HEADER.pack(MAGIC, schema_id) + payload


def unframed(record: bytes) -> tuple[int, bytes]:
    """Split a record into the schema id and the rest; raises `BadRecord`."""
    if len(record) < HEADER_BYTES:
        raise BadRecord(f"the record has {len(record)} bytes, too few for the id of a schema")
    magic, schema_id = _HEADER.unpack_from(record)
    if magic != MAGIC:
        raise BadRecord(f"the record begins with {magic:#04x} instead of the magic byte 0 and a schema id")
    return schema_id, record[HEADER_BYTES:]


def add_message_indexes(indexes: Sequence[int], payload: bytes) -> bytes:
    """Add message indexes, which locate the message type: its index in the file, then in the enclosing message, and so
    on."""
    return message_indexes(indexes) + payload


def message_indexes(indexes: Sequence[int]) -> bytes:
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(_varint(number) for number in (len(indexes), *indexes))


def split_message_indexes(payload: bytes) -> tuple[list[int], bytes]:
    """Split off the message indexes. Raises `BadRecord`."""
    count, position = _read_varint(payload, 0)
    if not 0 <= count <= INDEXES_MAX:
        raise BadRecord(f"the record has {count} message indexes, which is too many")
    indexes = []
    for _ in range(count):
        index, position = _read_varint(payload, position)
        indexes.append(index)
    return indexes or [0], payload[position:]


def _varint(number: int) -> bytes:
    left = number << 1 if number >= 0 else (-number << 1) - 1
    written = bytearray()
    while left > 0x7F:
        written.append(left & 0x7F | 0x80)
        left >>= 7
    written.append(left)
    return bytes(written)


def _read_varint(payload: bytes, position: int) -> tuple[int, int]:
    total = 0
    for number in range(_VARINT_BYTES_MAX):
        if position + number >= len(payload):
            raise BadRecord("the record ends before its message begins")
        part = payload[position + number]
        total |= (part & 0x7F) << (7 * number)
        if part < 0x80:
            return (total >> 1) ^ -(total & 1), position + number + 1
    raise BadRecord("the record's message index is not a valid varint")
