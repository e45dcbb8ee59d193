"""Writing records into a batch's payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.records.kernels.record import Header
from millbeck.records.kernels.varints import encode, size_of

if TYPE_CHECKING:
    from mypy_extensions import i64

_NULL: Final = b"\x01"
_NO_ATTRIBUTES: Final = b"\x00"


def encode_record(
    offset_delta: i64,
    timestamp_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...],
) -> bytes:
    """One record, its length in front, as it stands in a batch."""
    parts = [_NO_ATTRIBUTES, encode(timestamp_delta), encode(offset_delta)]
    if key is None:
        parts.append(_NULL)
    else:
        parts.append(encode(len(key)))
        parts.append(key)
    if value is None:
        parts.append(_NULL)
    else:
        parts.append(encode(len(value)))
        parts.append(value)
    parts.append(encode(len(headers)))
    for name, header_value in headers:
        encoded_name = name.encode("utf-8", "surrogateescape")
        parts.append(encode(len(encoded_name)))
        parts.append(encoded_name)
        if header_value is None:
            parts.append(_NULL)
        else:
            parts.append(encode(len(header_value)))
            parts.append(header_value)
    body = b"".join(parts)
    return encode(len(body)) + body


def record_size(
    offset_delta: i64,
    timestamp_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[Header, ...],
) -> i64:
    """The length of what `encode_record` would make."""
    size: i64 = 1 + size_of(timestamp_delta) + size_of(offset_delta) + size_of(len(headers))
    size += 1 if key is None else size_of(len(key)) + len(key)
    size += 1 if value is None else size_of(len(value)) + len(value)
    for name, header_value in headers:
        name_size: i64 = len(name.encode("utf-8", "surrogateescape"))
        size += size_of(name_size) + name_size
        size += 1 if header_value is None else size_of(len(header_value)) + len(header_value)
    return size_of(size) + size
