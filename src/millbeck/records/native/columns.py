"""Decoder from a batch's (decompressed) records to columns of numbers: positions of keys, values, headers; timestamps.

No object is created per record. The results are appended to growing buffers of 64-bit little-endian numbers:

- ``rows``: six for each record: position and size of its key, position and size of its value, offset, timestamp.
  Positions are in ``payload``; a size of -1 means null.
- ``header_counts``: one for each record, if headers are requested.
- ``header_slots``: four for each header: position and size of its name, position and size of its value.

Every number is checked against the end of its record and every record against the end of the batch, compiled or not.
The result is the number of records taken, or -1 for malformed records. The buffers are from librt, mypyc's runtime
library, which requires that this module is compiled in a group of its own; without librt a Python replacement is used.
For the same reason it has its own varint loops: a call into another group passes Python objects (docs/adr/0017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

try:
    from librt.strings import BytesWriter, write_i64_le
except ImportError:
    from millbeck.records.native.bytes_writer import BytesWriter, write_i64_le  # type: ignore[assignment]

if TYPE_CHECKING:
    from mypy_extensions import i64

RECORD_SIZE_MIN: Final = 7
_INT64_MAX: Final = 0x7FFFFFFFFFFFFFFF
_UINT32_MAX: Final = 0xFFFFFFFF
_BAD: Final = -1
_NO_NUMBER: Final = -1


class ColumnBuffers:
    """Columns collected from several batches whose records are in one payload."""

    def __init__(self, with_headers: bool) -> None:
        self.rows = BytesWriter()
        self.header_counts = BytesWriter()
        self.header_slots = BytesWriter()
        self.with_headers = with_headers
        self.row_count = 0
        self.header_count = 0


def _varint(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 32-bit zigzag varint; returns it and its end, which is -1 for a malformed or truncated one."""
    raw: i64 = 0
    shift: i64 = 0
    while position < end and shift < 35:
        byte: i64 = payload[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw > _UINT32_MAX:
                return 0, _NO_NUMBER
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    return 0, _NO_NUMBER


def _varlong(payload: bytes, position: i64, end: i64) -> tuple[i64, i64]:
    """Decode a 64-bit zigzag varint; returns it and its end, which is -1 for a malformed or truncated one."""
    raw: i64 = 0
    shift: i64 = 0
    while position < end and shift < 70:
        byte: i64 = payload[position]
        position += 1
        if shift == 63 and byte > 1:
            return 0, _NO_NUMBER
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            # Compiled, the 64th bit makes ``raw`` negative and the right shift keeps the sign; the mask removes it.
            return ((raw >> 1) & _INT64_MAX) ^ -(raw & 1), position
        shift += 7
    return 0, _NO_NUMBER


def _take_headers(payload: bytes, position: i64, end: i64, count: i64, slots: BytesWriter) -> bool:
    """Append the positions of ``count`` headers; returns whether they are well-formed and end exactly at ``end``."""
    # A header has at least two bytes; checked before anything is allocated for the count.
    if count < 0 or count > (end - position) >> 1:
        return False
    index: i64 = 0
    size: i64
    while index < count:
        size, position = _varint(payload, position, end)
        if position == _NO_NUMBER or size < 0 or size > end - position:
            return False
        write_i64_le(slots, position)
        write_i64_le(slots, size)
        position += size
        size, position = _varint(payload, position, end)
        if position == _NO_NUMBER or size < -1 or size > end - position:
            return False
        write_i64_le(slots, position)
        write_i64_le(slots, size)
        if size > 0:
            position += size
        index += 1
    return position == end


def _headers_fit(payload: bytes, position: i64, end: i64, count: i64) -> bool:
    """The same check without collecting the headers."""
    if count < 0 or count > (end - position) >> 1:
        return False
    index: i64 = 0
    size: i64
    while index < count + count:
        size, position = _varint(payload, position, end)
        if position == _NO_NUMBER or size < -(index & 1) or size > end - position:
            return False
        if size > 0:
            position += size
        index += 1
    return position == end


def take_records(
    payload: bytes,
    start: i64,
    payload_end: i64,
    count: i64,
    base_offset: i64,
    base_timestamp: i64,
    append_timestamp: i64,
    first_offset: i64,
    end_offset: i64,
    columns: ColumnBuffers,
) -> i64:
    """Append the ``count`` records between ``start`` and ``payload_end`` with offsets in the range; returns how many.

    ``append_timestamp`` is -1, or the timestamp of all records of a LogAppendTime batch. After a result of -1
    ``columns`` has part of the batch and must be discarded.
    """
    if start < 0 or payload_end > len(payload) or start > payload_end:
        return _BAD
    if count < 0 or count > (payload_end - start) // RECORD_SIZE_MIN:
        return _BAD
    # A local: compiled, a 63-bit constant is an object that each use would convert to a number again.
    int64_max: i64 = _INT64_MAX
    rows = columns.rows
    header_counts = columns.header_counts
    header_slots = columns.header_slots
    with_headers = columns.with_headers
    taken: i64 = 0
    headers: i64 = 0
    position: i64 = start
    index: i64 = 0
    byte: i64
    second: i64
    size: i64
    end: i64
    timestamp: i64
    offset: i64
    key_begin: i64
    key_size: i64
    value_begin: i64
    while index < count:
        index += 1
        if position >= payload_end:
            return _BAD
        byte = payload[position]
        second = payload[position + 1] if position + 1 < payload_end else 0x80
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            size = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            size, position = _varint(payload, position, payload_end)
        if position == _NO_NUMBER or size < RECORD_SIZE_MIN - 1 or size > payload_end - position:
            return _BAD
        end = position + size

        position += 1
        byte = payload[position]
        second = payload[position + 1] if position + 1 < end else 0x80
        if byte < 0x80:
            timestamp = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            timestamp = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            timestamp, position = _varlong(payload, position, end)
        if position == _NO_NUMBER or position >= end:
            return _BAD
        if append_timestamp != -1:
            timestamp = append_timestamp
        else:
            if base_timestamp > int64_max - timestamp if timestamp > 0 else base_timestamp < -int64_max - timestamp:
                return _BAD
            timestamp += base_timestamp

        byte = payload[position]
        second = payload[position + 1] if position + 1 < end else 0x80
        if byte < 0x80:
            offset = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            offset = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            offset, position = _varint(payload, position, end)
        if position == _NO_NUMBER or position >= end or offset < 0 or base_offset > int64_max - offset:
            return _BAD
        offset += base_offset

        byte = payload[position]
        if byte < 0x80:
            key_size = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            key_size, position = _varint(payload, position, end)
        if position == _NO_NUMBER or key_size < -1 or key_size >= end - position:
            return _BAD
        key_begin = position
        if key_size > 0:
            position += key_size

        byte = payload[position]
        second = payload[position + 1] if position + 1 < end else 0x80
        if byte < 0x80:
            size = (byte >> 1) ^ -(byte & 1)
            position += 1
        elif second < 0x80:
            size = ((byte & 0x7F) | second << 7) >> 1 ^ -(byte & 1)
            position += 2
        else:
            size, position = _varint(payload, position, end)
        if position == _NO_NUMBER or size < -1 or size >= end - position:
            return _BAD
        value_begin = position
        if size > 0:
            position += size

        if offset < first_offset or offset >= end_offset:
            headers, position = _varint(payload, position, end)
            if position == _NO_NUMBER or not _headers_fit(payload, position, end, headers):
                return _BAD
            position = end
            continue
        write_i64_le(rows, key_begin)
        write_i64_le(rows, key_size)
        write_i64_le(rows, value_begin)
        write_i64_le(rows, size)
        write_i64_le(rows, offset)
        write_i64_le(rows, timestamp)
        taken += 1

        byte = payload[position]
        if byte < 0x80:
            headers = (byte >> 1) ^ -(byte & 1)
            position += 1
        else:
            headers, position = _varint(payload, position, end)
        if position == _NO_NUMBER:
            return _BAD
        if headers != 0 or position != end:
            if with_headers:
                if not _take_headers(payload, position, end, headers, header_slots):
                    return _BAD
                columns.header_count += headers
            elif not _headers_fit(payload, position, end, headers):
                return _BAD
        if with_headers:
            write_i64_le(header_counts, headers)
        position = end
    if position != payload_end:
        return _BAD
    columns.row_count += taken
    return taken
