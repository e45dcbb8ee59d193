"""Needs pyarrow and numpy: the columns of an Arrow record batch as the native kernels take them.

The columns are those of Spark's Kafka sink: ``value`` (required), ``key``, ``headers``; keys and values are binary or
string.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from millbeck.client.columns.arrow import null_mask
from millbeck.kernel.errors import InvalidRequest
from millbeck.records.columns import Pieces, Rows

BORDER: Final = np.dtype("<i8")
_NO_PIECES: Final = Pieces(b"", bytes(8), b"")


class UnsuitableColumns(InvalidRequest):
    """The columns cannot be stored as records."""


class MissingColumn(UnsuitableColumns):
    """A column that records need is missing."""


def rows_of(batch: Any) -> Rows:
    """The batch's columns as the native kernel needs them; raises `UnsuitableColumns` for other column types."""
    names = batch.schema.names
    if "value" not in names:
        raise MissingColumn('rows need a column "value", binary or string')
    values = pieces_of(batch.column("value"), "value")
    if "key" in names:
        keys = pieces_of(batch.column("key"), "key")
    else:
        keys = Pieces(b"", bytes(8 * (batch.num_rows + 1)), b"\x01" * batch.num_rows)
    if "headers" not in names:
        return Rows(keys, values, b"", _NO_PIECES, _NO_PIECES)
    headers = batch.column("headers")
    if not pa.types.is_list(headers.type) or not pa.types.is_struct(headers.type.value_type):
        raise UnsuitableColumns(f'the column "headers" must be an array of key and value, not {headers.type}')
    entries = headers.values
    header_names = _binary(entries.field("key"), "headers.key")
    if header_names.null_count:
        raise UnsuitableColumns("a header has no name: its key is null")
    return Rows(
        keys,
        values,
        _list_borders(headers),
        _pieces(header_names),
        pieces_of(entries.field("value"), "headers.value"),
    )


def pieces_of(column: Any, name: str) -> Pieces:
    """The buffers of a binary or string column called ``name``."""
    return _pieces(_binary(column, name))


def _binary(column: Any, name: str) -> Any:
    kind = column.type
    if pa.types.is_null(kind):
        return column.cast(pa.binary())
    if not (
        pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
    ):
        raise UnsuitableColumns(f'the column "{name}" must be binary or string, not {kind}: cast or serialize it first')
    return column.cast(pa.binary())


def _pieces(column: Any) -> Pieces:
    """The buffers of a column; for a slice of a larger array, only its part."""
    _, offsets, payload = column.buffers()
    borders = _borders(offsets, column)
    nulls = null_mask(column).astype(np.uint8).tobytes() if column.null_count else b""
    return Pieces(b"" if payload is None else payload.to_pybytes(), borders.tobytes(), nulls)


def _borders(offsets: Any, column: Any) -> Any:
    if offsets is None or len(column) == 0:
        return np.zeros(len(column) + 1, dtype=BORDER)
    found = np.frombuffer(offsets, dtype=np.int32)
    return found[column.offset : column.offset + len(column) + 1].astype(BORDER)


def _list_borders(headers: Any) -> bytes:
    """List offsets that skip null lists, which may still span entries."""
    borders = _borders(headers.buffers()[1], headers)
    if not headers.null_count:
        return bytes(borders.tobytes())
    sizes = np.diff(borders)
    if not sizes[null_mask(headers)].any():
        return bytes(borders.tobytes())
    raise UnsuitableColumns('the column "headers" holds entries in null rows')
