"""Encoder from columns to records: the partition of each row, and the encoded records of a batch.

The reverse of `columns`, for many rows at once. Keys, values and headers are concatenated in one buffer each, with
their boundaries as 64-bit little-endian numbers, and the records of a batch are appended to one buffer. Boundaries are
checked against their buffer before anything is written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

try:
    from librt.strings import BytesWriter, read_i64_le, write_i64_le
except ImportError:
    from millbeck.records.native.bytes_writer import (  # type: ignore[assignment]
        BytesWriter,
        read_i64_le,
        write_i64_le,
    )

if TYPE_CHECKING:
    from mypy_extensions import i64

_SEED: Final = 0x9747B28C
_FACTOR: Final = 0x5BD1E995
_MASK: Final = 0xFFFFFFFF
_POSITIVE: Final = 0x7FFFFFFF


class Pieces:
    """A column of byte strings with their boundaries; ``nulls`` has a byte for each of them, or is empty."""

    def __init__(self, payload: bytes, borders: bytes, nulls: bytes) -> None:
        self.payload = payload
        self.borders = borders
        self.nulls = nulls
        count: i64 = len(borders) // 8 - 1
        self.count = count
        if count < 0 or (len(nulls) != 0 and len(nulls) != count):
            raise ValueError(
                "a column needs one boundary more than it has values, and null marks for all values or none"
            )
        _check_borders(borders, count, len(payload))


def _check_borders(borders: bytes, count: i64, end: i64) -> None:
    before: i64 = 0
    index: i64 = 0
    border: i64
    while index <= count:
        border = read_i64_le(borders, index * 8)
        if border < before or border > end:
            raise ValueError(f"boundary {index} is {border}, not between {before} and {end}")
        before = border
        index += 1


def _murmur2(payload: bytes, begin: i64, size: i64) -> i64:
    """The unsigned 32-bit murmur2 hash of a part of the payload (see `murmur2.murmur2`)."""
    value: i64 = (_SEED ^ size) & _MASK
    position: i64 = begin
    end: i64 = begin + size
    word: i64
    byte: i64
    while position + 4 <= end:
        word = payload[position]
        byte = payload[position + 1]
        word |= byte << 8
        byte = payload[position + 2]
        word |= byte << 16
        byte = payload[position + 3]
        word |= byte << 24
        word = (word * _FACTOR) & _MASK
        word ^= word >> 24
        word = (word * _FACTOR) & _MASK
        value = ((value * _FACTOR) & _MASK) ^ word
        position += 4
    if end - position == 3:
        byte = payload[position + 2]
        value ^= byte << 16
    if end - position >= 2:
        byte = payload[position + 1]
        value ^= byte << 8
    if end - position >= 1:
        byte = payload[position]
        value = ((value ^ byte) * _FACTOR) & _MASK
    value ^= value >> 13
    value = (value * _FACTOR) & _MASK
    value ^= value >> 15
    return value


def partitions_of(keys: Pieces, partition_count: i64) -> bytes:
    """The partition of each key by the default partitioner, as 64-bit little-endian numbers; -1 for rows without a
    key.
    """
    if partition_count < 1:
        raise ValueError(f"invalid partition count {partition_count}")
    found = BytesWriter()
    payload = keys.payload
    borders = keys.borders
    nulls = keys.nulls
    has_nulls = len(nulls) != 0
    count: i64 = keys.count
    index: i64 = 0
    begin: i64
    while index < count:
        if has_nulls and nulls[index] != 0:
            write_i64_le(found, -1)
        else:
            begin = read_i64_le(borders, index * 8)
            hashed: i64 = _murmur2(payload, begin, read_i64_le(borders, index * 8 + 8) - begin)
            write_i64_le(found, (hashed & _POSITIVE) % partition_count)
        index += 1
    return found.getvalue()


def _size_of(value: i64) -> i64:
    """Encoded size of a non-negative number as zigzag varint."""
    size: i64 = 1
    value >>= 6
    while value != 0:
        value >>= 7
        size += 1
    return size


def _put(out: BytesWriter, value: i64) -> None:
    """Append a non-negative number as zigzag varint."""
    value <<= 1
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _piece_size(pieces: Pieces, index: i64) -> i64:
    """The size of a byte string, or -1 for null."""
    if len(pieces.nulls) != 0 and pieces.nulls[index] != 0:
        return -1
    return read_i64_le(pieces.borders, index * 8 + 8) - read_i64_le(pieces.borders, index * 8)


def _put_piece(out: BytesWriter, pieces: Pieces, index: i64, size: i64) -> None:
    if size < 0:
        out.append(1)
        return
    _put(out, size)
    if size > 0:
        begin: i64 = read_i64_le(pieces.borders, index * 8)
        out.write(pieces.payload[begin : begin + size])


class Rows:
    """Columns to be encoded: the headers of row ``index`` are between ``header_borders[index]`` and the next one, if
    any.
    """

    def __init__(
        self, keys: Pieces, values: Pieces, header_borders: bytes, header_names: Pieces, header_values: Pieces
    ) -> None:
        self.keys = keys
        self.values = values
        self.header_borders = header_borders
        self.header_names = header_names
        self.header_values = header_values
        self.has_headers = len(header_borders) != 0
        if keys.count != values.count or header_names.count != header_values.count:
            raise ValueError("columns of different lengths")
        if len(header_borders) != 0:
            if len(header_borders) // 8 != keys.count + 1:
                raise ValueError("headers need one boundary more than there are rows")
            _check_borders(header_borders, keys.count, header_names.count)


class RecordBuffer:
    """The encoded records of a batch that is being filled; every record has the batch's timestamp."""

    def __init__(self, size_bytes_max: int) -> None:
        self.record_count = 0
        self._size_bytes_max = size_bytes_max
        self._out = BytesWriter()

    def take(self, rows: Rows, order: bytes, first: int, end: int) -> int:
        """Append the rows in ``order`` from ``first`` to ``end``; returns the index at which the batch was full.

        At least one row is taken when the batch is empty.
        """
        stopped = _encode(rows, order, first, end, self.record_count, self._size_bytes_max, self._out)
        self.record_count += stopped - first
        return stopped

    @property
    def size_bytes(self) -> int:
        return len(self._out)

    def payload(self) -> bytes:
        return self._out.getvalue()


def _encode(rows: Rows, order: bytes, first: i64, end: i64, delta: i64, size_max: i64, out: BytesWriter) -> i64:
    if first < 0 or end > len(order) // 8:
        raise ValueError(f"rows {first} to {end} are outside the {len(order) // 8} rows")
    count: i64 = rows.keys.count
    index: i64 = first
    row: i64
    body: i64
    key_size: i64
    value_size: i64
    header: i64
    header_begin: i64 = 0
    header_end: i64 = 0
    size: i64
    while index < end:
        row = read_i64_le(order, index * 8)
        if row < 0 or row >= count:
            raise ValueError(f"there is no row {row}")
        key_size = _piece_size(rows.keys, row)
        value_size = _piece_size(rows.values, row)
        body = 2 + _size_of(delta)
        body += 1 if key_size < 0 else _size_of(key_size) + key_size
        body += 1 if value_size < 0 else _size_of(value_size) + value_size
        if rows.has_headers:
            header_begin = read_i64_le(rows.header_borders, row * 8)
            header_end = read_i64_le(rows.header_borders, row * 8 + 8)
            header = header_begin
            while header < header_end:
                size = _piece_size(rows.header_names, header)
                body += _size_of(size) + size
                size = _piece_size(rows.header_values, header)
                body += 1 if size < 0 else _size_of(size) + size
                header += 1
        body += _size_of(header_end - header_begin)
        if len(out) != 0 and len(out) + _size_of(body) + body > size_max:
            return index
        _put(out, body)
        out.append(0)
        out.append(0)
        _put(out, delta)
        _put_piece(out, rows.keys, row, key_size)
        _put_piece(out, rows.values, row, value_size)
        _put(out, header_end - header_begin)
        header = header_begin
        while header < header_end:
            _put_piece(out, rows.header_names, header, _piece_size(rows.header_names, header))
            _put_piece(out, rows.header_values, header, _piece_size(rows.header_values, header))
            header += 1
        delta += 1
        index += 1
    return index
