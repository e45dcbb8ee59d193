"""Converters between records and columns: compiled if the extension can be loaded, else from their Python files."""

from __future__ import annotations

from typing import Final

from millbeck.records.native import load_pure

try:
    from millbeck.records.native import columns as _columns
    from millbeck.records.native import rows as _rows
except (ImportError, ValueError):
    # The extensions need the version of librt they were compiled with; the Python files work with any, or without.
    _pure = load_pure("millbeck.records.python_kernels")
    _columns, _rows = _pure["columns"], _pure["rows"]

ColumnBuffers = _columns.ColumnBuffers
take_records = _columns.take_records
Pieces = _rows.Pieces
RecordBuffer = _rows.RecordBuffer
Rows = _rows.Rows
partitions_of = _rows.partitions_of

COMPILED: Final = not hasattr(take_records, "__code__")
