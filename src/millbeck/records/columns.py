"""The kernel that turns records into columns, compiled where that works, from its Python file elsewhere."""

from __future__ import annotations

from typing import Final

from millbeck.records.kernels import load_pure

try:
    from millbeck.records.kernels.columns import ColumnBuffers, take_records
except (ImportError, ValueError):
    # The extension needs the librt it was compiled for; the Python file does with another one, or with none.
    _pure = load_pure("millbeck.records.python_kernels")["columns"]
    ColumnBuffers, take_records = _pure.ColumnBuffers, _pure.take_records

__all__ = ["COMPILED", "ColumnBuffers", "take_records"]

COMPILED: Final = not hasattr(take_records, "__code__")
