"""Needs pyarrow and numpy: build Arrow record batches from columns of record positions; Arrow copies keys and values.

A fetched payload is treated as one long binary array whose elements are, alternately, a value and the bytes between it
and the next value; Arrow's `take` of every second element is then one pass in C++ that copies only the values.

Numeric columns are built from buffers: if they were built from numpy arrays, Arrow would import pandas first, which
takes a new worker longer than many batches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from millbeck.client.consumer.fetched_columns import Columns

_ROW_NUMBERS: Final = 6
_SLOT_NUMBERS: Final = 4

_INT32: Final = pa.int32()
_INT64: Final = pa.int64()
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_FIELDS: Final = (
    pa.field("key", pa.binary()),
    pa.field("value", pa.binary()),
    pa.field("topic", pa.string()),
    pa.field("partition", _INT32),
    pa.field("offset", _INT64),
    pa.field("timestamp", _TIMESTAMP),
    pa.field("timestampType", _INT32),
)


@lru_cache(maxsize=2)
def schema(with_headers: bool) -> Any:
    """The Arrow schema of the source's rows; Spark requires exactly this one."""
    return pa.schema([*_FIELDS, pa.field("headers", HEADERS)] if with_headers else _FIELDS)


def record_batch(columns: Columns, topic: str, partition: int, with_headers: bool) -> Any:
    """A `pyarrow.RecordBatch` of the records."""
    count = columns.row_count
    rows = np.frombuffer(columns.rows, dtype="<i8").reshape(count, _ROW_NUMBERS)
    arrays = [
        gathered(columns.payload, rows[:, 0], rows[:, 1]),
        gathered(columns.payload, rows[:, 2], rows[:, 3]),
        _repeated(topic, count),
        numeric_array(_INT32, np.full(count, partition, dtype=np.int32)),
        numeric_array(_INT64, np.ascontiguousarray(rows[:, 4])),
        numeric_array(_TIMESTAMP, rows[:, 5] * 1000),
        numeric_array(_INT32, np.full(count, columns.timestamp_type, dtype=np.int32)),
    ]
    if with_headers:
        arrays.append(_headers(columns))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(with_headers))


def marker_batch(timestamp_ms: int, with_headers: bool) -> Any:
    """A record batch of one row that is no record: it has only a timestamp."""
    wanted = schema(with_headers)
    at = numeric_array(_TIMESTAMP, np.array([timestamp_ms * 1000], dtype=np.int64))
    arrays = [at if field.name == "timestamp" else pa.nulls(1, type=field.type) for field in wanted]
    return pa.RecordBatch.from_arrays(arrays, schema=wanted)


def gathered(payload: bytes, begins: Any, sizes: Any) -> Any:
    """A binary array of the slices of ``payload`` given by start positions and sizes; size -1 is null.

    The slices are in ascending order, as in a batch. Their positions fit 32 bits.
    """
    count = len(begins)
    if count == 0:
        return pa.array([], type=pa.binary())
    is_null = sizes < 0
    null_count = int(is_null.sum())
    if null_count == count:
        return pa.nulls(count, type=pa.binary())
    borders = np.empty(2 * count + 1, dtype=np.int32)
    borders[0:-1:2] = begins
    borders[1::2] = begins + np.maximum(sizes, 0) if null_count else begins + sizes
    borders[-1] = borders[-2]
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * count, [None, pa.py_buffer(borders), pa.py_buffer(payload)], null_count=0
    )
    wanted = numeric_array(_INT32, np.arange(0, 2 * count, 2, dtype=np.int32), is_null if null_count else None)
    return pieces.take(wanted)


def numeric_array(kind: Any, numbers: Any, is_null: Any = None) -> Any:
    """An array of a fixed-size type that shares the memory of a contiguous numpy array."""
    validity = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [validity, pa.py_buffer(numbers)])


def null_mask(column: Any) -> Any:
    """A numpy array with one boolean per row of an Arrow array: whether the row is null."""
    count = len(column)
    bits = column.buffers()[0]
    if bits is None or not column.null_count:
        return np.full(count, column.null_count > 0)
    valid = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), bitorder="little")
    return valid[column.offset : column.offset + count] == 0


def _repeated(text: str, count: int) -> Any:
    """The same string in every row, built without a Python loop."""
    encoded = text.encode()
    borders = np.arange(0, (count + 1) * len(encoded), len(encoded) or 1, dtype=np.int32)[: count + 1]
    return pa.StringArray.from_buffers(count, pa.py_buffer(borders), pa.py_buffer(encoded * count))


def _headers(columns: Columns) -> Any:
    """A list of name and value per record; null, as in Spark, for records without headers."""
    counts = np.frombuffer(columns.header_counts, dtype="<i8")
    slots = np.frombuffer(columns.header_slots, dtype="<i8").reshape(columns.header_count, _SLOT_NUMBERS)
    names = _texts(gathered(columns.payload, slots[:, 0], slots[:, 1]))
    values = gathered(columns.payload, slots[:, 2], slots[:, 3])
    borders = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=borders[1:])
    entries = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    offsets = numeric_array(_INT32, borders, np.append(counts == 0, False))
    return pa.ListArray.from_arrays(offsets, entries, type=HEADERS)


def _texts(names: Any) -> Any:
    """Header names as strings; invalid UTF-8 becomes replacement characters, as in Java."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], type=pa.string())
