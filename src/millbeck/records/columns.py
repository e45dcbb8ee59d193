"""The kernels between records and columns, compiled where that works, from their Python files elsewhere."""

from __future__ import annotations

from typing import Final

from millbeck.records.kernels import load_pure

try:
    from millbeck.records.kernels import columns as _columns
    from millbeck.records.kernels import rows as _rows
except (ImportError, ValueError):
    # The extensions need the librt they were compiled for; the Python files do with another one, or with none.
    _pure = load_pure("millbeck.records.python_kernels")
    _columns, _rows = _pure["columns"], _pure["rows"]

ColumnBuffers = _columns.ColumnBuffers
take_records = _columns.take_records
Pieces = _rows.Pieces
RecordBuffer = _rows.RecordBuffer
Rows = _rows.Rows
partitions_of = _rows.partitions_of

COMPILED: Final = not hasattr(take_records, "__code__")
