"""Encoder from records to a batch's payload.

The payload is collected as a list of small pieces (numbers, keys, values) that is joined once, so keys, values and
header values are copied only once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from millbeck.records.native.record import Header, Record
from millbeck.records.native.varints import SHORT, SHORT_END, encode, size_of

if TYPE_CHECKING:
    from mypy_extensions import i64

_NULL: Final = b"\x01"
_NO_HEADERS: Final = b"\x00"
_NO_ATTRIBUTES: Final = b"\x00"


def record_size(
    offset_delta: i64, timestamp_delta: i64, key: bytes | None, value: bytes | None, headers: tuple[Header, ...]
) -> i64:
    """The encoded size of the record in a batch, including its length field."""
    size: i64 = _body_size(offset_delta, timestamp_delta, key, value, headers)
    return size_of(size) + size


def _body_size(
    offset_delta: i64, timestamp_delta: i64, key: bytes | None, value: bytes | None, headers: tuple[Header, ...]
) -> i64:
    size: i64 = 1 + size_of(timestamp_delta) + size_of(offset_delta)
    part: i64 = 0
    if key is not None:
        part = len(key)
        size += part
    size += size_of(part)
    part = 0
    if value is not None:
        part = len(value)
        size += part
    size += size_of(part) + size_of(len(headers))
    for name, header_value in headers:
        part = len(name.encode("utf-8", "surrogateescape"))
        size += size_of(part) + part
        part = 0
        if header_value is not None:
            part = len(header_value)
            size += part
        size += size_of(part)
    return size


def _append(
    pieces: list[bytes],
    offset_delta: i64,
    timestamp_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...],
) -> i64:
    """Append the pieces of one record; returns its size."""
    timestamp_bytes = SHORT[timestamp_delta] if 0 <= timestamp_delta < SHORT_END else encode(timestamp_delta)
    offset_bytes = SHORT[offset_delta] if 0 <= offset_delta < SHORT_END else encode(offset_delta)
    key_length = value_length = _NULL
    size: i64 = len(timestamp_bytes) + len(offset_bytes) + 2
    part: i64
    if key is not None:
        part = len(key)
        key_length = SHORT[part] if part < SHORT_END else encode(part)
        size += part
    if value is not None:
        part = len(value)
        value_length = SHORT[part] if part < SHORT_END else encode(part)
        size += part
    size += len(key_length) + len(value_length)
    if headers:
        encoded_headers = _encoded_headers(headers)
        size += len(encoded_headers) - 1
    else:
        encoded_headers = _NO_HEADERS
    length = SHORT[size] if size < SHORT_END else encode(size)
    if key:
        pieces += (length, _NO_ATTRIBUTES, timestamp_bytes, offset_bytes, key_length, key, value_length)
    else:
        pieces += (length, _NO_ATTRIBUTES, timestamp_bytes, offset_bytes, key_length, value_length)
    if value:
        pieces += (value, encoded_headers)
    else:
        pieces.append(encoded_headers)
    return len(length) + size


def _encoded_headers(headers: tuple[Header, ...]) -> bytes:
    """The number of headers and the headers."""
    pieces = [encode(len(headers))]
    for name, header_value in headers:
        encoded_name = name.encode("utf-8", "surrogateescape")
        pieces.append(encode(len(encoded_name)))
        pieces.append(encoded_name)
        if header_value is None:
            pieces.append(_NULL)
        else:
            pieces.append(encode(len(header_value)))
            pieces.append(header_value)
    return b"".join(pieces)


def encode_records(records: list[Record], base_offset: i64, base_timestamp: i64) -> tuple[bytes, i64, i64]:
    """Encode records; returns the payload, the offset after the last one, and their largest timestamp or -1.

    A record offset of -1 means the next offset. Raises ValueError for an offset that does not ascend.
    """
    pieces: list[bytes] = []
    next_offset: i64 = base_offset
    max_timestamp: i64 = -1
    for record in records:
        offset: i64 = record.offset
        timestamp: i64 = record.timestamp
        if offset == -1:
            offset = next_offset
        elif offset < next_offset:
            raise ValueError(f"record offset {offset} comes after {next_offset - 1}")
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        key = cast("bytes | None", record.key)
        value = cast("bytes | None", record.value)
        _append(pieces, offset - base_offset, timestamp - base_timestamp, key, value, record.headers)
        next_offset = offset + 1
    return b"".join(pieces), next_offset, max_timestamp


class PayloadWriter:
    """A payload to which records are appended one by one, with offset deltas 0, 1, 2, ...; used for producer
    batches.
    """

    def __init__(self) -> None:
        self.record_count = 0
        self.size_bytes = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self._pieces: list[bytes] = []

    def size_with(
        self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()
    ) -> int:
        """`size_bytes` as it would be after `append` of this record."""
        delta = timestamp - self.base_timestamp if self.record_count else 0
        return self.size_bytes + record_size(self.record_count, delta, key, value, headers)

    def append(self, timestamp: int, key: bytes | None, value: bytes | None, headers: tuple[Header, ...] = ()) -> None:
        if self.record_count == 0:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.size_bytes += _append(
            self._pieces, self.record_count, timestamp - self.base_timestamp, key, value, headers
        )
        self.record_count += 1

    def payload(self) -> bytes:
        return b"".join(self._pieces)
