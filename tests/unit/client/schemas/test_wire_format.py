"""The frame of schema registries, byte for byte, and what is no such frame."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.client.schemas.errors import BadRecord
from millbeck.client.schemas.wire_format import add_message_indexes, framed, split_message_indexes, unframed


def test_the_id_stands_in_four_bytes_after_a_zero() -> None:
    assert framed(258, b"rest") == b"\0\0\0\1\2rest"
    assert unframed(b"\0\xff\xff\xff\xffx") == (2**32 - 1, b"x")


@pytest.mark.parametrize(
    ("indexes", "written"),
    [([0], b"\0"), ([1], b"\2\2"), ([0, 0], b"\4\0\0"), ([1, 0, 3], b"\6\2\0\6"), ([64], b"\2\x80\1")],
)
def test_indexes_are_zigzag_varints_and_the_first_message_is_one_zero(indexes: list[int], written: bytes) -> None:
    assert add_message_indexes(indexes, b"p") == written + b"p"
    assert split_message_indexes(written + b"p") == (indexes, b"p")


def test_the_first_message_may_be_written_out() -> None:
    assert split_message_indexes(b"\2\0p") == ([0], b"p")


@pytest.mark.parametrize(
    ("record", "complaint"), [(b"", "0 bytes"), (b"\0\0\0\1", "4 bytes"), (b"{\0\0\0\1", "begins with 0x7b")]
)
def test_what_has_no_frame_is_named(record: bytes, complaint: str) -> None:
    with pytest.raises(BadRecord, match=complaint):
        unframed(record)


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"", "ends before"),
        (b"\4\2", "ends before"),
        (b"\1", "-1 message indexes"),
        (b"\xf0\1", "120 message indexes"),
        (b"\xff" * 6, "not a valid varint"),
    ],
)
def test_what_is_no_place_of_a_message_is_named(payload: bytes, complaint: str) -> None:
    with pytest.raises(BadRecord, match=complaint):
        split_message_indexes(payload)


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=8), st.binary(max_size=20), st.integers(0, 2**32 - 1))
def test_what_is_written_is_read(indexes: list[int], payload: bytes, schema_id: int) -> None:
    found, rest = unframed(framed(schema_id, add_message_indexes(indexes, payload)))
    assert (found, *split_message_indexes(rest)) == (schema_id, indexes, payload)


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(record: bytes) -> None:
    try:
        _, payload = unframed(record)
        indexes, rest = split_message_indexes(payload)
    except BadRecord:
        return
    assert indexes
    assert payload.endswith(rest)
