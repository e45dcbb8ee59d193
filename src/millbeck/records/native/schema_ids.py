"""Finds the first record whose key or value does not begin with a schema id that the topic accepts.

A key or value with a schema has a zero byte and four bytes with the id in front (the wire format of schema registry
clients). The records were checked by `walk` before, and every read is checked against the end of the record again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.records.native.varints import NO_NUMBER, read_varint

if TYPE_CHECKING:
    from mypy_extensions import i64

NOTHING_REFUSED: Final = -1
ID_BYTES: Final = 5
"""The zero byte and the id."""


def _size(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """A size and the position after it, `NO_NUMBER` if there is none before ``end``."""
    byte: i64
    if position < end:
        byte = payload[position]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
    return read_varint(payload, position, end)


def first_refused(
    payload: bytes, start: i64, count: i64, keys: frozenset[int] | None, values: frozenset[int] | None
) -> i64:
    """The index of the first record whose key or value is not accepted, or `NOTHING_REFUSED`.

    ``keys`` and ``values`` are the accepted ids; None accepts anything. An absent key or value needs no id.
    """
    payload_end: i64 = len(payload)
    position: i64 = start
    index: i64 = 0
    size: i64
    number: i64
    # Most records have the id of the record before.
    last_key: i64 = -1
    last_value: i64 = -1
    while index < count:
        size, position = _size(payload, position, payload_end)
        if position == NO_NUMBER or size < 1 or size > payload_end - position:
            return index
        end: i64 = position + size
        position += 1
        # The deltas of timestamp and offset.
        while position < end and payload[position] >= 0x80:
            position += 1
        position += 1
        while position < end and payload[position] >= 0x80:
            position += 1
        size, position = _size(payload, position + 1, end)
        if position == NO_NUMBER or size > end - position:
            return index
        if size >= 0:
            if keys is not None:
                if size < ID_BYTES or payload[position]:
                    return index
                number = (
                    payload[position + 1] << 24
                    | payload[position + 2] << 16
                    | payload[position + 3] << 8
                    | payload[position + 4]
                )
                if number != last_key:
                    if number not in keys:
                        return index
                    last_key = number
            position += size
        if values is not None:
            size, position = _size(payload, position, end)
            if position == NO_NUMBER or size > end - position:
                return index
            if size >= 0:
                if size < ID_BYTES or payload[position]:
                    return index
                number = (
                    payload[position + 1] << 24
                    | payload[position + 2] << 16
                    | payload[position + 3] << 8
                    | payload[position + 4]
                )
                if number != last_value:
                    if number not in values:
                        return index
                    last_value = number
        position = end
        index += 1
    return NOTHING_REFUSED
