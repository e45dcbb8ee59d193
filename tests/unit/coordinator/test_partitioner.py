"""Expected values come from java.lang.String.hashCode and Kafka's Utils.abs."""

from __future__ import annotations

import pytest

from millbeck.coordinator.partitioner import java_string_hash, partition_for

HASHES = {
    "order-processors": -658362880,
    "image-processors": -1586155053,
    "": 0,
    "polygenelubricants": -2147483648,
    "gruppe-é-日本": -1165525347,
    "héllo😀": 291564465,
}

PARTITIONS = {"order-processors": 30, "image-processors": 3, "": 0, "polygenelubricants": 0, "gruppe-é-日本": 47}


@pytest.mark.parametrize(("text", "expected"), HASHES.items())
def test_hash_is_java_s(text: str, expected: int) -> None:
    assert java_string_hash(text) == expected


@pytest.mark.parametrize(("key", "expected"), PARTITIONS.items())
def test_partition_of_fifty(key: str, expected: int) -> None:
    assert partition_for(key, 50) == expected
