"""Reading varints off the hot path: both widths, cut short, too wide."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.kernel.errors import InvalidRecord
from millbeck.records.varint import VARINT_SIZE_MAX, VARLONG_SIZE_MAX, encode, read_varint, read_varlong


@given(st.integers(-(2**31), 2**31 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_a_number_is_read_where_it_stands(value: int, before: bytes, after: bytes) -> None:
    encoded = encode(value)
    assert len(encoded) <= VARINT_SIZE_MAX
    expected = (value, len(before) + len(encoded))
    assert read_varint(before + encoded + after, len(before)) == expected
    assert read_varlong(memoryview(before + encoded + after), len(before)) == expected


def test_a_longer_form_than_needed_is_read() -> None:
    assert read_varint(b"\x82\x80\x00", 0) == (1, 3)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff\xff\xff\xff", b"\xff" * 5, b"\xff\xff\xff\xff\x10"])
def test_what_is_no_32_bit_number_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read_varint(data, 0)


@pytest.mark.parametrize("data", [b"\xff" * 9, b"\xff" * 10, b"\xff" * 9 + b"\x02", b"\x80" * 10 + b"\x00"])
def test_what_is_no_64_bit_number_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecord):
        read_varlong(data, 0)


def test_the_widest_64_bit_number_is_read() -> None:
    assert read_varlong(b"\xff" * 9 + b"\x01", 0) == (-(2**63), VARLONG_SIZE_MAX)
