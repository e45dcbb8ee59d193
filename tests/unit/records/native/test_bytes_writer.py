"""The stand-in for librt's buffer writes what librt writes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.records.native import bytes_writer

librt = pytest.importorskip("librt.strings", reason="librt is not installed: there is nothing to compare with")


@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.binary(max_size=5)), max_size=20))
@settings(max_examples=50)
def test_it_writes_what_librt_writes(parts: list[int | bytes]) -> None:
    ours, theirs = bytes_writer.BytesWriter(), librt.BytesWriter()
    for part in parts:
        if isinstance(part, bytes):
            ours.write(part)
            theirs.write(part)
        else:
            bytes_writer.write_i64_le(ours, part)
            librt.write_i64_le(theirs, part)
    assert ours.getvalue() == theirs.getvalue()
    assert len(ours) == len(theirs)
