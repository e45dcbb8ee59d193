"""Reading records of one size without the compiled kernels: a run of them at a time, by slices with a stride.

Records of a topic often have one size: fixed-width encodings, or tests and benchmarks. Their lengths, offset deltas and
null keys are then columns of bytes, which the interpreter's slices and comparisons check at once. A batch that is not
made of such runs is left to `millbeck.records.native.read`, which also says what is wrong with a malformed one.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import repeat
from struct import Struct
from typing import Final, NamedTuple

from millbeck.records.native import read
from millbeck.records.native.record import NOWHERE, Record, RecordSource, new_records

_RUN_MIN: Final = 8
"""Shorter runs are not worth it: then the whole batch is read record by record."""
_ONE_BYTE_END: Final = 0x40
_TWO_BYTE_END: Final = 0x2000
_NULL: Final = 1
_LAST_BYTES: Final = bytes(range(0x80))
"""The bytes that end a number; all others go on."""
_FIRST_BYTES: Final = bytes(range(0x80, 0x100))
_ONE: Final = bytes(delta << 1 for delta in range(_ONE_BYTE_END))
_LOW: Final = bytes(delta << 1 & 0x7F | 0x80 for delta in range(_TWO_BYTE_END))
_HIGH: Final = bytes(delta >> 6 for delta in range(_TWO_BYTE_END))
"""The numbers 0, 1, 2, ... as columns of bytes: of one byte, and the two bytes of those that take two."""


class _Layout(NamedTuple):
    """The parts of a record, as distances from its beginning."""

    size: int
    timestamp: int
    offset: int
    key_length: int
    key_size: int
    value_length: int
    value_size: int


def read_records(
    payload: bytes,
    start: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int,
    source: RecordSource = NOWHERE,
) -> list[Record]:
    """`millbeck.records.native.read.read_records`, faster for records of one size."""
    if count >= _RUN_MIN and 0 <= start < len(payload) and 0 <= base_offset < 1 << 62 and 0 <= base_timestamp < 1 << 62:
        records = _runs(payload, start, count, base_offset, base_timestamp, append_timestamp, source)
        if records is not None:
            return records
    return read.read_records(payload, start, count, base_offset, base_timestamp, append_timestamp, source)


def _runs(
    payload: bytes,
    position: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    append_timestamp: int,
    source: RecordSource,
) -> list[Record] | None:
    records: list[Record] = []
    index = 0
    while index < count:
        layout = _layout(payload, position)
        if layout is None:
            return None
        length = _run_length(payload, position, layout, index, count)
        if length < min(_RUN_MIN, count - index):
            return None
        timestamps: Iterable[int] = repeat(append_timestamp)
        if append_timestamp == -1:
            timestamps = _timestamps(payload, position, layout, length, base_timestamp)
        keys, values = _keys_and_values(payload, position, layout, length)
        first = base_offset + index
        records += new_records(range(first, first + length), timestamps, keys, values, source)
        index += length
        position += length * layout.size
    return records if position == len(payload) else None


def _number(payload: bytes, position: int) -> tuple[int, int]:
    """The number of one or two bytes at ``position``, without its sign, and its end; -1 for another one."""
    low = payload[position]
    if low < 0x80:
        return (-1 if low & 1 else low >> 1), position + 1
    high = payload[position + 1]
    return (-1 if low & 1 or high >= 0x80 else (low & 0x7F | high << 7) >> 1), position + 2


def _width(payload: bytes, position: int) -> int:
    return 1 if payload[position] < 0x80 else 2


def _layout(payload: bytes, begin: int) -> _Layout | None:
    """The layout of the record at ``begin``; None unless it has no headers and only numbers of one or two bytes."""
    try:
        size, position = _number(payload, begin)
        end = position + size
        timestamp = position + 1
        offset = timestamp + _width(payload, timestamp)
        key_length = offset + _width(payload, offset)
        key_size, position = (-1, key_length + 1) if payload[key_length] == _NULL else _number(payload, key_length)
        if key_size < 0 and payload[key_length] != _NULL:
            return None
        value_length = position + max(key_size, 0)
        is_null = payload[value_length] == _NULL
        value_size, position = (-1, value_length + 1) if is_null else _number(payload, value_length)
        if (value_size < 0 and not is_null) or size < 0:
            return None
        position += max(value_size, 0)
        if position + 1 != end or payload[position] != 0:
            return None
    except IndexError:
        return None
    return _Layout(
        end - begin, timestamp - begin, offset - begin, key_length - begin, key_size, value_length - begin, value_size
    )


def _run_length(payload: bytes, position: int, layout: _Layout, index: int, count: int) -> int:
    """The number of records from ``position`` that have this layout, and offset deltas from ``index``."""
    size = layout.size
    length = min(count - index, (len(payload) - position) // size)
    has_wide_offsets = layout.key_length - layout.offset == 2
    length = min(length, (_TWO_BYTE_END if has_wide_offsets else _ONE_BYTE_END) - index)
    key, value = layout.value_length - max(layout.key_size, 0), size - 1 - max(layout.value_size, 0)
    for place in (*range(layout.timestamp - 1), *range(layout.key_length, key), *range(layout.value_length, value), -1):
        if length <= 0:
            return 0
        column = payload[position + place % size : position + length * size : size]
        length -= len(column.lstrip(column[:1]))
    if length <= 0:
        return 0
    end = position + length * size
    at = position + layout.timestamp
    if layout.offset - layout.timestamp == 2:
        length -= max(
            len(payload[at:end:size].lstrip(_FIRST_BYTES)), len(payload[at + 1 : end : size].lstrip(_LAST_BYTES))
        )
    else:
        length -= len(payload[at:end:size].lstrip(_LAST_BYTES))
    at = position + layout.offset
    end = position + length * size
    until = index + length
    if has_wide_offsets:
        fits = payload[at:end:size] == _LOW[index:until] and payload[at + 1 : end : size] == _HIGH[index:until]
    else:
        fits = payload[at:end:size] == _ONE[index:until]
    return length if fits else 0


def _timestamps(payload: bytes, position: int, layout: _Layout, length: int, base: int) -> Iterable[int]:
    size = layout.size
    at = position + layout.timestamp
    end = position + length * size
    low = payload[at:end:size]
    if layout.offset - layout.timestamp == 1:
        if low.count(low[:1]) == length:
            return repeat(base + (low[0] >> 1 ^ -(low[0] & 1)))
        return [base + (byte >> 1 ^ -(byte & 1)) for byte in low]
    high = payload[at + 1 : end : size]
    return [base + ((one & 0x7F | two << 7) >> 1 ^ -(one & 1)) for one, two in zip(low, high, strict=True)]


def _keys_and_values(
    payload: bytes, position: int, layout: _Layout, length: int
) -> tuple[Iterable[bytes | None], Iterable[bytes | None]]:
    key_size, value_size = max(layout.key_size, 0), max(layout.value_size, 0)
    key_at = layout.value_length - key_size
    value_at = layout.size - 1 - value_size
    whole = memoryview(payload)[position : position + length * layout.size]
    form = Struct(f"{key_at}x{key_size}s{value_at - layout.value_length}x{value_size}s1x")
    keys: Iterable[bytes | None] = repeat(None)
    values: Iterable[bytes | None] = repeat(None)
    if layout.key_size >= 0 and layout.value_size >= 0:
        keys, values = zip(*form.iter_unpack(whole), strict=True)
    elif layout.key_size >= 0:
        keys = [key for key, _ in form.iter_unpack(whole)]
    elif layout.value_size >= 0:
        values = [value for _, value in form.iter_unpack(whole)]
    return keys, values
