from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.storage.offset_index import CorruptIndex
from millbeck.storage.txn_index import AbortedTransaction, decode, encode, overlapping

FIRST = AbortedTransaction(7, 10, 20, 15)
SECOND = AbortedTransaction(8, 15, 30, 31)
THIRD = AbortedTransaction(7, 40, 50, 51)


def test_an_entry_is_34_bytes() -> None:
    content = encode([FIRST])
    assert content == bytes.fromhex("00000000000000000007000000000000000a0000000000000014000000000000000f")
    assert decode(content, 0) == [FIRST]


@pytest.mark.parametrize(
    ("start", "upper", "expected"),
    [
        (0, 10, []),
        (0, 11, [FIRST]),
        (20, 21, [FIRST, SECOND]),
        (21, 40, [SECOND]),
        (31, 40, []),
        (0, 100, [FIRST, SECOND, THIRD]),
    ],
    ids=str,
)
def test_overlap_includes_both_ends_of_a_transaction(
    start: int, upper: int, expected: list[AbortedTransaction]
) -> None:
    found: list[AbortedTransaction] = []
    overlapping([FIRST, SECOND, THIRD], start, upper, found)
    assert found == expected


def test_the_search_ends_where_nothing_later_can_overlap() -> None:
    found: list[AbortedTransaction] = []
    assert overlapping([FIRST, SECOND, THIRD], 0, 31, found)
    assert found == [FIRST, SECOND]
    assert not overlapping([FIRST, SECOND, THIRD], 0, 100, [])


@pytest.mark.parametrize(
    "content",
    [b"short", b"\x00\x01" + encode([FIRST])[2:], encode([SECOND, FIRST]), encode([AbortedTransaction(1, 9, 8, 8)])],
    ids=["size", "version", "order", "first after last"],
)
def test_impossible_files_are_refused(content: bytes) -> None:
    with pytest.raises(CorruptIndex):
        decode(content, 0)


def test_entries_before_the_segment_are_refused() -> None:
    with pytest.raises(CorruptIndex):
        decode(encode([FIRST]), base_offset=21)


@given(st.binary(max_size=136))
def test_any_bytes_are_an_index_or_refused(content: bytes) -> None:
    try:
        entries = decode(content, 0)
    except CorruptIndex:
        return
    assert encode(entries) == content
