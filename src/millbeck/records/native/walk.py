"""Validation of a batch's (decompressed) records in one pass that creates no objects.

It checks that the payload is exactly ``count`` well-formed records with offset deltas 0, 1, 2, ..., finds the largest
timestamp, and counts the records that violate the topic's rules (missing key, timestamp out of range). One-byte
numbers, the most frequent ones, are decoded inline. Every read is checked against the end of the record, compiled or
not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.records.native.varints import NO_NUMBER, read_varint, read_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

OK: Final = 0
BAD_COUNT: Final = 1
BAD_LENGTH: Final = 2
BAD_TIMESTAMP: Final = 3
BAD_OFFSET: Final = 4
BAD_KEY: Final = 5
BAD_VALUE: Final = 6
BAD_HEADERS: Final = 7
TRAILING_BYTES: Final = 8

PROBLEMS: Final = {
    BAD_COUNT: "the batch is too short for its record count",
    BAD_LENGTH: "its length is malformed or does not fit in the batch",
    BAD_TIMESTAMP: "its timestamp is malformed or out of range",
    BAD_OFFSET: "its offset delta is not its index in the batch",
    BAD_KEY: "its key does not fit in the record",
    BAD_VALUE: "its value does not fit in the record",
    BAD_HEADERS: "its headers do not fit in the record",
    TRAILING_BYTES: "bytes follow the last record",
}

RECORD_SIZE_MIN: Final = 7
"""The minimum size of a record: length, attributes, timestamp, offset, key, value and header count take a byte each."""

_INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF


def _headers_fit(payload: bytes, position: i64, end: i64, count: i64) -> bool:
    """Whether exactly ``count`` headers fill the bytes from ``position`` to ``end``."""
    if count < 0 or count > (end - position) >> 1:
        return False
    size: i64
    for _ in range(count):
        size, position = read_varint(payload, position, end)
        if position == NO_NUMBER or size < 0 or size > end - position:
            return False
        size, position = read_varint(payload, position + size, end)
        if position == NO_NUMBER or size < -1 or size > end - position:
            return False
        if size > 0:
            position += size
    return position == end


def walk(
    payload: bytes,
    start: i64,
    count: i64,
    base_timestamp: i64,
    oldest: i64,
    newest: i64,
    keys_required: bool,
) -> tuple[i64, i64, i64, i64]:
    """Validate the records from ``start`` to the end of ``payload``: ``(problem, index, max_timestamp, refused)``.

    ``problem`` is `OK` or the problem of the record ``index``. ``refused`` counts the well-formed records that lack a
    required key or whose timestamp, unless it is -1, is not between ``oldest`` and ``newest``.
    """
    # A local: compiled, a 63-bit constant is an object that each use would convert to a number again.
    int64_max: i64 = _INT64_MAX
    payload_end: i64 = len(payload)
    max_timestamp: i64 = -1
    refused: i64 = 0
    if start < 0 or start > payload_end or count < 0 or count > (payload_end - start) // RECORD_SIZE_MIN:
        return BAD_COUNT, 0, max_timestamp, refused
    position: i64 = start
    index: i64 = 0
    byte: i64
    second: i64
    size: i64
    end: i64
    delta: i64
    while index < count:
        if position >= payload_end:
            return BAD_LENGTH, index, max_timestamp, refused
        byte = payload[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            second = payload[position + 1] if position + 1 < payload_end else 0x80
            if second < 0x80:
                size = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
                position += 2
            else:
                size, position = read_varint(payload, position, payload_end)
        if position == NO_NUMBER or size < RECORD_SIZE_MIN - 1 or size > payload_end - position:
            return BAD_LENGTH, index, max_timestamp, refused
        end = position + size

        position += 1
        byte = payload[position]
        if byte < 0x80:
            delta = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            second = payload[position + 1] if position + 1 < end else 0x80
            if second < 0x80:
                delta = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
                position += 2
            else:
                delta, position = read_varlong(payload, position, end)
            if position == NO_NUMBER:
                return BAD_TIMESTAMP, index, max_timestamp, refused
        if base_timestamp > int64_max - delta if delta > 0 else base_timestamp < -int64_max - delta:
            return BAD_TIMESTAMP, index, max_timestamp, refused
        delta += base_timestamp
        if delta > max_timestamp:
            max_timestamp = delta
        broken: bool = (delta < oldest or delta > newest) and delta != -1

        if position >= end:
            return BAD_OFFSET, index, max_timestamp, refused
        byte = payload[position]
        if byte < 0x80:
            delta = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            second = payload[position + 1] if position + 1 < end else 0x80
            if second < 0x80:
                delta = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
                position += 2
            else:
                delta, position = read_varint(payload, position, end)
        if position == NO_NUMBER or delta != index:
            return BAD_OFFSET, index, max_timestamp, refused

        if position >= end:
            return BAD_KEY, index, max_timestamp, refused
        byte = payload[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            size, position = read_varint(payload, position, end)
        if position == NO_NUMBER or size < -1 or size > end - position:
            return BAD_KEY, index, max_timestamp, refused
        if size >= 0:
            position += size
        elif keys_required:
            broken = True

        if position >= end:
            return BAD_VALUE, index, max_timestamp, refused
        byte = payload[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            second = payload[position + 1] if position + 1 < end else 0x80
            if second < 0x80:
                size = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
                position += 2
            else:
                size, position = read_varint(payload, position, end)
        if position == NO_NUMBER or size < -1 or size > end - position:
            return BAD_VALUE, index, max_timestamp, refused
        if size >= 0:
            position += size

        if position >= end:
            return BAD_HEADERS, index, max_timestamp, refused
        byte = payload[position]
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            size, position = read_varint(payload, position, end)
        if position == NO_NUMBER:
            return BAD_HEADERS, index, max_timestamp, refused
        if (size != 0 or position != end) and not _headers_fit(payload, position, end, size):
            return BAD_HEADERS, index, max_timestamp, refused

        if broken:
            refused += 1
        position = end
        index += 1
    if position != payload_end:
        return TRAILING_BYTES, index, max_timestamp, refused
    return OK, index, max_timestamp, refused
