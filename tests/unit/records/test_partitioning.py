"""Keys stay where other clients put them."""

from __future__ import annotations

import pytest

from millbeck.records.partitioning import partition_for_key

CASES = {
    "the hash is negative": (b"7654321", 4, 3),
    "another count moves the key": (b"7654321", 6, 5),
    "two keys share a partition": (b"cust-42", 4, 0),
    "and the other one": (b"cust-99", 4, 0),
    "one partition": (b"anything", 1, 0),
}


@pytest.mark.parametrize(("key", "count", "expected"), CASES.values(), ids=CASES.keys())
def test_partition_of_a_key(key: bytes, count: int, expected: int) -> None:
    assert partition_for_key(key, count) == expected
