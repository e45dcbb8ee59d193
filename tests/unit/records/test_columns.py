"""The kernel of columns is there whether or not librt and the extension are."""

from __future__ import annotations

import subprocess
import sys

from millbeck.records import columns

WITHOUT_LIBRT = """
import sys
sys.modules["librt"] = sys.modules["librt.strings"] = None
from millbeck.records.columns import COMPILED, ColumnBuffers, take_records
buffers = ColumnBuffers(False)
record = bytes([12, 0, 0, 0, 1, 1, 0])
print(COMPILED, take_records(record, 0, 7, 1, 5, 9, -1, 0, 99, buffers), len(buffers.rows.getvalue()))
"""


def test_it_says_which_form_is_in_use() -> None:
    is_extension = type(columns.take_records).__name__ == "builtin_function_or_method"
    assert is_extension == columns.COMPILED


def test_it_works_without_librt() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_LIBRT], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "1", "48"]
