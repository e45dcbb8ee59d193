"""Reading the records of a batch's (decompressed) payload into objects.

Every number is checked against the end of its record and every record against the end of the payload, so malformed
bytes raise `InvalidRecord` and nothing else, compiled or not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.kernels.record import Header, Record

if TYPE_CHECKING:
    from mypy_extensions import i64

_INT32_RAW_MAX: Final = 0xFFFFFFFF
_MASK_63: Final = 0x7FFFFFFFFFFFFFFF
_TIMESTAMP_MAX: Final = 0x7FFFFFFFFFFFFFFF
_NO_HEADERS: Final[tuple[Header, ...]] = ()


def _varint(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """A 32-bit zigzag number before ``end``, and where it ends."""
    raw: i64 = 0
    shift: i64 = 0
    while position < end and shift < 35:
        byte: i64 = payload[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw > _INT32_RAW_MAX:
                break
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    raise InvalidRecord(f"record holds a number that is cut short or too wide before byte {position}")


def _varlong(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """A 64-bit zigzag number before ``end``, and where it ends."""
    raw: i64 = 0
    shift: i64 = 0
    while position < end and shift < 70:
        byte: i64 = payload[position]
        position += 1
        if shift == 63 and byte > 1:
            break
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Compiled, the 64th bit makes ``raw`` negative and the shift drags it along; the mask drops it.
            return ((raw >> 1) & _MASK_63) ^ -(raw & 1), position
        shift += 7
    raise InvalidRecord(f"record holds a number that is cut short or too wide before byte {position}")


def _headers(payload: bytes, position: i64, end: i64, count: i64) -> tuple[Header, ...]:
    """Exactly ``count`` headers between ``position`` and ``end``."""
    # A header takes two bytes at least; checked before anything grows with the count.
    if count < 0 or count > (end - position) >> 1:
        raise InvalidRecord(f"record claims {count} headers in {end - position} bytes")
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
    payload: bytes, start: i64, count: i64, base_offset: i64, base_timestamp: i64, append_timestamp: i64
) -> list[Record]:
    """The ``count`` records that fill ``payload`` from ``start`` to its end.

    ``append_timestamp`` is -1, or the timestamp that all records of a LogAppendTime batch have.
    """
    payload_end: i64 = len(payload)
    # The smallest record has seven bytes.
    if start < 0 or start > payload_end or count < 0 or count > (payload_end - start) // 7:
        raise InvalidRecord(f"batch claims {count} records in {payload_end - start} bytes")
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
            records.append(Record(base_offset + delta, timestamp, key, value, _NO_HEADERS))
        else:
            records.append(Record(base_offset + delta, timestamp, key, value, _headers(payload, position, end, size)))
        position = end
    if position != payload_end:
        raise InvalidRecord(f"batch has {payload_end - position} bytes after its last record")
    return records
