from __future__ import annotations

import pytest

from millbeck.coordinator.group.consumer.records import (
    AssignedTopic,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    HeldTopic,
)
from millbeck.coordinator.group.records import GroupRecord, decode, encode

ID = bytes(range(16))
TOPIC = "02" + ID.hex() + "03" + "00000001" + "00000004" + "00"
"""One topic with two partitions in a compact array of one."""

GOLDEN = {
    "group": (
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupMetadataValue(7),
        "0003" + "000167",
        "0000" + "00000007" + "00",
    ),
    "group with a hash": (
        ConsumerGroupMetadataKey("g"),
        ConsumerGroupMetadataValue(7, -2),
        "0003" + "000167",
        "0000" + "00000007" + "01" + "00" + "08" + "fffffffffffffffe",
    ),
    "member": (
        ConsumerGroupMemberMetadataKey("g", "m"),
        ConsumerGroupMemberMetadataValue(None, "r", "c", "/h", ["t"], None, 5, "uniform", None),
        "0005" + "000167" + "00016d",
        # One tagged field, number 0, of one byte: no terms of a classic member. Left out it would be an empty struct.
        "0000"
        + "00"
        + "0272"
        + "0263"
        + "032f68"
        + "02"
        + "0274"
        + "00"
        + "00000005"
        + "08"
        + b"uniform".hex()
        + "01"
        + "00"
        + "01"
        + "00",
    ),
    "classic member": (
        ConsumerGroupMemberMetadataKey("g", "m"),
        ConsumerGroupMemberMetadataValue(
            classic_member_metadata=ClassicMemberMetadata(9, [ClassicProtocol("p", b"\x01")])
        ),
        "0005" + "000167" + "00016d",
        "0000" + "0000" + "0101" + "01" + "00" + "ffffffff" + "00"
        "01" + "00" + "0c" + "01" + "00000009" + "02" + "0270" + "0201" + "00" + "00",
    ),
    "target epoch": (
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(3),
        "0006" + "000167",
        "0000" + "00000003" + "00",
    ),
    "target epoch with its time": (
        ConsumerGroupTargetAssignmentMetadataKey("g"),
        ConsumerGroupTargetAssignmentMetadataValue(3, 9),
        "0006" + "000167",
        "0000" + "00000003" + "01" + "0008" + "0000000000000009",
    ),
    "target": (
        ConsumerGroupTargetAssignmentMemberKey("g", "m"),
        ConsumerGroupTargetAssignmentMemberValue([AssignedTopic(ID, [1, 4])]),
        "0007" + "000167" + "00016d",
        "0000" + TOPIC + "00",
    ),
    "current": (
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        ConsumerGroupCurrentMemberAssignmentValue(5, 4, 1, [HeldTopic(ID, [1, 4], [])], []),
        "0008" + "000167" + "00016d",
        "0000" + "00000005" + "00000004" + "01" + TOPIC + "01" + "00",
    ),
    "current with epochs": (
        ConsumerGroupCurrentMemberAssignmentKey("g", "m"),
        ConsumerGroupCurrentMemberAssignmentValue(5, 4, 1, [HeldTopic(ID, [1, 4], [2, 5])], []),
        "0008" + "000167" + "00016d",
        # One tagged field, number 0, of nine bytes: two epochs (KIP-1251).
        "0000"
        + "00000005"
        + "00000004"
        + "01"
        + TOPIC[:-2]
        + "01"
        + "00"
        + "09"
        + "0300000002"
        + "00000005"
        + "01"
        + "00",
    ),
    "expression": (
        ConsumerGroupRegularExpressionKey("g", "t.*"),
        ConsumerGroupRegularExpressionValue(["t"], 2, 3),
        "0010" + "000167" + "0003" + b"t.*".hex(),
        "0000" + "02" + "0274" + "0000000000000002" + "0000000000000003" + "00",
    ),
}


@pytest.mark.parametrize(("key", "value", "key_bytes", "value_bytes"), GOLDEN.values(), ids=GOLDEN.keys())
def test_records_are_kafka_s_bytes(key: object, value: object, key_bytes: str, value_bytes: str) -> None:
    record = GroupRecord(key, value)  # type: ignore[arg-type]
    encoded_key, encoded_value = encode(record)
    assert encoded_value is not None
    assert (encoded_key.hex(), encoded_value.hex()) == (key_bytes, value_bytes)
    assert decode(encoded_key, encoded_value) == record
    assert decode(encoded_key, None) == GroupRecord(key, None)  # type: ignore[arg-type]
