"""Decoder from a batch's (decompressed) payload to record objects.

Numbers of one and two bytes are decoded inline, since a call for each would be most of the work. Nothing of a record is
checked against its end on the way: positions only ascend, so a record whose parts end exactly where its length says has
none that reach beyond. Malformed bytes raise `InvalidRecord` and nothing else, compiled or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.native.record import NOWHERE, Header, Record, RecordSource, new_record
from millbeck.records.native.varints import read_varint, read_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

_INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF
_NEAR: Final = 0x1FFF
"""The largest magnitude of a number of two bytes."""
_NO_HEADERS: Final[tuple[Header, ...]] = ()


def _varint(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 32-bit zigzag varint that ends before ``end``; returns it and its end."""
    value, after = read_varint(payload, position, end)
    if after < 0:
        raise InvalidRecord(f"record has a malformed or truncated number at byte {position}")
    return value, after


def _timestamp_delta(payload: bytes, position: i64, end: i64, base_timestamp: i64) -> tuple[i64, i64]:
    """Decode a timestamp delta, which ends before ``end``; returns it and its end."""
    delta, after = read_varlong(payload, position, end)
    if after < 0:
        raise InvalidRecord(f"record has a malformed or truncated number at byte {position}")
    if base_timestamp > _INT64_MAX - delta if delta >= 0 else base_timestamp < -_INT64_MAX - delta:
        raise InvalidRecord("record's timestamp is out of range")
    return delta, after


def _headers(payload: bytes, position: i64, end: i64, count: i64) -> tuple[Header, ...]:
    """Exactly ``count`` headers between ``position`` and ``end``."""
    # A header has at least two bytes; checked before anything is allocated for the count.
    if count < 0 or count > (end - position) >> 1:
        raise InvalidRecord(f"record cannot have {count} headers in {end - position} bytes")
    headers: list[Header] = []
    size: i64
    for _ in range(count):
        size, position = _varint(payload, position, end)
        if size < 0 or size > end - position:
            raise InvalidRecord(f"header name of {size} bytes does not fit in its record")
        name = payload[position : position + size].decode("utf-8", "surrogateescape")
        position += size
        size, position = _varint(payload, position, end)
        if size == -1:
            headers.append((name, None))
            continue
        if size < 0 or size > end - position:
            raise InvalidRecord(f"header value of {size} bytes does not fit in its record")
        headers.append((name, payload[position : position + size]))
        position += size
    if position != end:
        raise InvalidRecord(f"record has {end - position} bytes after its last header")
    return tuple(headers)


def read_records(
    payload: bytes,
    start: i64,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    append_timestamp: i64,
    source: RecordSource = NOWHERE,
) -> list[Record]:
    """Decode the ``count`` records that fill ``payload`` from ``start`` to its end.

    ``append_timestamp`` is -1, or the timestamp of all records of a LogAppendTime batch.
    """
    payload_end: i64 = len(payload)
    # The smallest record has seven bytes.
    if start < 0 or start > payload_end or count < 0 or count > (payload_end - start) // 7:
        raise InvalidRecord(f"batch cannot have {count} records in {payload_end - start} bytes")
    if (
        base_offset > _INT64_MAX - 0x7FFFFFFF
        or base_timestamp > _INT64_MAX - _NEAR
        or base_timestamp < -_INT64_MAX + _NEAR
    ):
        raise InvalidRecord(f"batch has offsets from {base_offset} or timestamps from {base_timestamp}: out of range")
    try:
        return _records(payload, start, payload_end, count, base_offset, base_timestamp, append_timestamp, source)
    except IndexError:
        raise InvalidRecord("batch's last record is truncated") from None


def _records(
    payload: bytes,
    position: i64,
    payload_end: i64,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    append_timestamp: i64,
    source: RecordSource,
) -> list[Record]:
    records: list[Record] = []
    size: i64
    end: i64
    delta: i64
    offset: i64
    timestamp: i64
    key: bytes | None
    value: bytes | None
    for _ in range(count):
        size = payload[position]
        if size < 0x80:
            position += 1
        elif payload[position + 1] < 0x80:
            size = size & 0x7F | payload[position + 1] << 7
            position += 2
        else:
            size, position = _varint(payload, position, payload_end)
            size <<= 1
        end = position + (size >> 1)
        if size & 1 or size < 12 or end > payload_end:
            raise InvalidRecord(f"record at byte {position} does not fit in its batch")
        position += 1

        delta = payload[position]
        if delta < 0x80:
            position += 1
            delta = (delta >> 1) ^ -(delta & 1)
        elif payload[position + 1] < 0x80:
            delta = delta & 0x7F | payload[position + 1] << 7
            position += 2
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, position = _timestamp_delta(payload, position, end, base_timestamp)
        timestamp = base_timestamp + delta if append_timestamp == -1 else append_timestamp

        offset = payload[position]
        if offset < 0x80:
            position += 1
        elif payload[position + 1] < 0x80:
            offset = offset & 0x7F | payload[position + 1] << 7
            position += 2
        else:
            offset, position = _varint(payload, position, end)
            offset = offset << 1 if offset >= 0 else 1
        if offset & 1:
            raise InvalidRecord(f"record before byte {position} has a negative offset delta")

        size = payload[position]
        position += 1
        if size == 1:
            key = None
        else:
            if size >= 0x80:
                size, position = _varint(payload, position - 1, end)
                size <<= 1
            size = -1 if size & 1 else size >> 1
            if size < 0 or size > end - position:
                raise InvalidRecord(f"key at byte {position} does not fit in its record")
            key = payload[position : position + size]
            position += size

        size = payload[position]
        position += 1
        if size == 1:
            value = None
        else:
            if size >= 0x80:
                if payload[position] < 0x80:
                    size = size & 0x7F | payload[position] << 7
                    position += 1
                else:
                    size, position = _varint(payload, position - 1, end)
                    size <<= 1
            size = -1 if size & 1 else size >> 1
            if size < 0 or size > end - position:
                raise InvalidRecord(f"value at byte {position} does not fit in its record")
            value = payload[position : position + size]
            position += size

        size = payload[position]
        position += 1
        if size == 0 and position == end:
            records.append(new_record(base_offset + (offset >> 1), timestamp, key, value, _NO_HEADERS, source))
        else:
            size, position = _varint(payload, position - 1, end)
            headers = _headers(payload, position, end, size)
            records.append(new_record(base_offset + (offset >> 1), timestamp, key, value, headers, source))
            position = end
    if position != payload_end:
        raise InvalidRecord(f"batch has {payload_end - position} bytes after its last record")
    return records
