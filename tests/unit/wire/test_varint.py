from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.wire.errors import DecodeError
from millbeck.wire.varint import SMALL, continue_varint, read_unsigned_varint, unsigned_varint

CASES = {
    "zero": (0, b"\x00"),
    "one byte": (127, b"\x7f"),
    "two bytes": (128, b"\x80\x01"),
    "three hundred": (300, b"\xac\x02"),
    "largest": (2**32 - 1, b"\xff\xff\xff\xff\x0f"),
}


@pytest.mark.parametrize(("value", "encoded"), CASES.values(), ids=CASES.keys())
def test_known_encodings(value: int, encoded: bytes) -> None:
    assert unsigned_varint(value) == encoded
    assert read_unsigned_varint(encoded, 0) == (value, len(encoded))


@given(st.integers(0, 2**32 - 1), st.binary(max_size=3), st.binary(max_size=3))
def test_what_is_written_is_read_back_from_the_middle(value: int, before: bytes, after: bytes) -> None:
    buffer = before + unsigned_varint(value) + after
    assert read_unsigned_varint(memoryview(buffer), len(before)) == (value, len(buffer) - len(after))


def test_small_values_are_precomputed_like_the_others() -> None:
    assert [read_unsigned_varint(encoded, 0)[0] for encoded in SMALL] == list(range(len(SMALL)))


@pytest.mark.parametrize("value", [-1, 2**32])
def test_only_unsigned_32_bit_integers_are_written(value: int) -> None:
    with pytest.raises(ValueError, match="unsigned 32-bit"):
        unsigned_varint(value)


@pytest.mark.parametrize("encoded", [b"", b"\x80", b"\xff\xff\xff\xff"])
def test_a_varint_that_is_cut_off_is_a_decode_error(encoded: bytes) -> None:
    with pytest.raises(DecodeError, match="cut off"):
        read_unsigned_varint(encoded, 0)


def test_a_sixth_byte_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="longer than 5"):
        continue_varint(b"\x80" * 10, 1, 0x80)
