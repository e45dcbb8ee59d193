"""Needs pyarrow and numpy: columns of numbers become Arrow record batches, and keys and values are gathered by Arrow.

A fetched payload is taken for one long binary array whose elements are, in turn, a value and what lies between it and
the next value; Arrow's `take` of every second element is then one pass in C++ that copies the values and nothing else.

Columns of numbers are made of buffers: to make them of numpy's arrays, Arrow would load pandas first, which takes a new
worker longer than many a batch.
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
    """The Arrow schema of what a source reads; Spark wants it exactly like this."""
    return pa.schema([*_FIELDS, pa.field("headers", HEADERS)] if with_headers else _FIELDS)


def record_batch(columns: Columns, topic: str, partition: int, with_headers: bool) -> Any:
    """A `pyarrow.RecordBatch` of these records."""
    count = columns.row_count
    rows = np.frombuffer(columns.rows, dtype="<i8").reshape(count, _ROW_NUMBERS)
    arrays = [
        gathered(columns.payload, rows[:, 0], rows[:, 1]),
        gathered(columns.payload, rows[:, 2], rows[:, 3]),
        _repeated(topic, count),
        of_numbers(_INT32, np.full(count, partition, dtype=np.int32)),
        of_numbers(_INT64, np.ascontiguousarray(rows[:, 4])),
        of_numbers(_TIMESTAMP, rows[:, 5] * 1000),
        of_numbers(_INT32, np.full(count, columns.timestamp_type, dtype=np.int32)),
    ]
    if with_headers:
        arrays.append(_headers(columns))
    return pa.RecordBatch.from_arrays(arrays, schema=schema(with_headers))


def gathered(payload: bytes, begins: Any, sizes: Any) -> Any:
    """A binary array of the pieces of ``payload`` that begin and are as long as these say; -1 is null.

    The pieces lie one after another, as records do. Their positions fit 32 bits.
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
    wanted = of_numbers(_INT32, np.arange(0, 2 * count, 2, dtype=np.int32), is_null if null_count else None)
    return pieces.take(wanted)


def of_numbers(kind: Any, numbers: Any, is_null: Any = None) -> Any:
    """An array of this fixed-size type over numpy's own memory, which lies one number after the other."""
    validity = None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(kind, len(numbers), [validity, pa.py_buffer(numbers)])


def nulls_of(column: Any) -> Any:
    """For each row of an Arrow array whether it is null, as numpy has it."""
    count = len(column)
    bits = column.buffers()[0]
    if bits is None or not column.null_count:
        return np.full(count, column.null_count > 0)
    valid = np.unpackbits(np.frombuffer(bits, dtype=np.uint8), bitorder="little")
    return valid[column.offset : column.offset + count] == 0


def _repeated(text: str, count: int) -> Any:
    """The same string in every row, made without touching each of them in Python."""
    encoded = text.encode()
    borders = np.arange(0, (count + 1) * len(encoded), len(encoded) or 1, dtype=np.int32)[: count + 1]
    return pa.StringArray.from_buffers(count, pa.py_buffer(borders), pa.py_buffer(encoded * count))


def _headers(columns: Columns) -> Any:
    """A list of name and value for each record; null, as Spark has it, for records without headers."""
    counts = np.frombuffer(columns.header_counts, dtype="<i8")
    slots = np.frombuffer(columns.header_slots, dtype="<i8").reshape(columns.header_count, _SLOT_NUMBERS)
    names = _texts(gathered(columns.payload, slots[:, 0], slots[:, 1]))
    values = gathered(columns.payload, slots[:, 2], slots[:, 3])
    borders = np.zeros(len(counts) + 1, dtype=np.int32)
    np.cumsum(counts, out=borders[1:])
    entries = pa.StructArray.from_arrays([names, values], fields=list(HEADERS.value_type))
    offsets = of_numbers(_INT32, borders, np.append(counts == 0, False))
    return pa.ListArray.from_arrays(offsets, entries, type=HEADERS)


def _texts(names: Any) -> Any:
    """Names as strings; bytes that are no UTF-8 become replacement characters, as in Java."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([name.decode("utf-8", "replace") for name in names.to_pylist()], type=pa.string())
