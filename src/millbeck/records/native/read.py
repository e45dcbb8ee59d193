"""Decoder from a batch's (decompressed) payload to record objects.

Every number is checked against the end of its record and every record against the end of the payload, so malformed
bytes raise `InvalidRecord` and nothing else, compiled or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.native.record import NOWHERE, Header, Record, RecordSource
from millbeck.records.native.varints import read_varint, read_varlong

if TYPE_CHECKING:
    from mypy_extensions import i64

_TIMESTAMP_MAX: Final = 0x7FFFFFFFFFFFFFFF
_NO_HEADERS: Final[tuple[Header, ...]] = ()


def _varint(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 32-bit zigzag varint that ends before ``end``; returns it and its end."""
    value, after = read_varint(payload, position, end)
    if after < 0:
        raise InvalidRecord(f"record has a malformed or truncated number at byte {position}")
    return value, after


def _varlong(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 64-bit zigzag varint that ends before ``end``; returns it and its end."""
    value, after = read_varlong(payload, position, end)
    if after < 0:
        raise InvalidRecord(f"record has a malformed or truncated number at byte {position}")
    return value, after


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
    records: list[Record] = []
    position: i64 = start
    size: i64
    delta: i64
    end: i64
    key: bytes | None
    value: bytes | None
    for _ in range(count):
        size, position = _varint(payload, position, payload_end)
        if size < 6 or size > payload_end - position:
            raise InvalidRecord(f"record of {size} bytes does not fit in its batch")
        end = position + size
        delta, position = _varlong(payload, position + 1, end)
        timestamp: i64 = append_timestamp
        if append_timestamp == -1:
            if delta >= 0:
                if base_timestamp > _TIMESTAMP_MAX - delta:
                    raise InvalidRecord("record's timestamp is out of range")
            elif base_timestamp < -_TIMESTAMP_MAX - delta:
                raise InvalidRecord("record's timestamp is out of range")
            timestamp = base_timestamp + delta
        delta, position = _varint(payload, position, end)
        if delta < 0 or base_offset > _TIMESTAMP_MAX - delta:
            raise InvalidRecord(f"record's offset delta is {delta}")
        size, position = _varint(payload, position, end)
        if size == -1:
            key = None
        else:
            if size < 0 or size > end - position:
                raise InvalidRecord(f"key of {size} bytes does not fit in its record")
            key = payload[position : position + size]
            position += size
        size, position = _varint(payload, position, end)
        if size == -1:
            value = None
        else:
            if size < 0 or size > end - position:
                raise InvalidRecord(f"value of {size} bytes does not fit in its record")
            value = payload[position : position + size]
            position += size
        size, position = _varint(payload, position, end)
        if size == 0 and position == end:
            records.append(Record(base_offset + delta, timestamp, key, value, _NO_HEADERS, source))
        else:
            records.append(
                Record(base_offset + delta, timestamp, key, value, _headers(payload, position, end, size), source)
            )
        position = end
    if position != payload_end:
        raise InvalidRecord(f"batch has {payload_end - position} bytes after its last record")
    return records
