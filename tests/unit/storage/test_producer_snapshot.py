from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.storage.producer_snapshot import CorruptSnapshot, decode, encode
from millbeck.storage.producer_state import ProducerStateEntry

DATA = ProducerStateEntry(7, 2, ((4, 90, 0, 5), (9, 100, 4, 1234)), 1234, 3, 96)
MARKED = ProducerStateEntry(8, 5, (), 99, 1)


def test_the_bytes_are_those_of_version_one() -> None:
    content = encode([DATA])
    assert content[:2] == b"\x00\x01"
    assert content[6:] == bytes.fromhex(
        "00000001000000000000000700020000000900000000000000640000000400000000000004d2000000030000000000000060"
    )


def test_only_the_last_batch_is_kept() -> None:
    (loaded,) = decode(encode([DATA]))
    assert loaded == ProducerStateEntry(7, 2, ((9, 100, 4, 1234),), 1234, 3, 96)


def test_a_producer_without_batches_comes_back_without() -> None:
    assert decode(encode([MARKED])) == [MARKED]
    assert decode(encode([])) == []


def test_damage_is_noticed() -> None:
    content = encode([DATA, MARKED])
    for index in range(len(content)):
        damaged = bytearray(content)
        damaged[index] ^= 1
        with pytest.raises(CorruptSnapshot):
            decode(bytes(damaged))
    for size in range(len(content)):
        with pytest.raises(CorruptSnapshot):
            decode(content[:size])


@given(st.binary(max_size=120))
def test_any_bytes_are_a_snapshot_or_refused(content: bytes) -> None:
    try:
        entries = decode(content)
    except CorruptSnapshot:
        return
    assert len(encode(entries)) == len(content)
