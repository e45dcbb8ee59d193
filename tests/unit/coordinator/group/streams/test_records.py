from __future__ import annotations

import pytest

from millbeck.coordinator.group import records
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.streams.records import (
    DECLARED,
    STREAMS_KEYS,
    HeldTasks,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
)
from millbeck.wire.messages.streams_groups import Endpoint, KeyValue, Subtopology


@pytest.mark.parametrize(("number", "key", "value"), DECLARED)
def test_a_record_comes_back_as_it_went(number: int, key: type, value: type) -> None:
    record = GroupRecord(key(), value())
    encoded = records.encode(record)
    assert encoded[0][:2] == number.to_bytes(2, "big")
    assert records.decode(*encoded) == record
    assert key in STREAMS_KEYS


GOLDEN = {
    "group": (
        GroupRecord(
            StreamsGroupMetadataKey("g"), StreamsGroupMetadataValue(7, -1, 0, [KeyValue("num.standby.replicas", "1")])
        ),
        "0011" + "0001" + "67",
        # Two tagged fields: the validated epoch, and a list of one setting.
        "0000" + "00000007" + "ffffffffffffffff" + "02" + "00" + "04" + "00000000"
        "01" + "19" + "02" + "15" + b"num.standby.replicas".hex() + "02" + "31" + "00",
    ),
    "group that is not validated": (
        GroupRecord(StreamsGroupMetadataKey("g"), StreamsGroupMetadataValue(7, -1)),
        "0011" + "0001" + "67",
        "0000" + "00000007" + "ffffffffffffffff" + "00",
    ),
    "member": (
        GroupRecord(
            StreamsGroupMemberMetadataKey("g", "m"),
            StreamsGroupMemberMetadataValue(
                None, "r", "c", "/h", 5, 0, "p", Endpoint("h", 40000), [KeyValue("zone", "a")]
            ),
        ),
        "0013" + "0001" + "67" + "0001" + "6d",
        "0000" + "00" + "0272" + "0263" + "032f68" + "00000005" + "00000000" + "0270"
        "01" + "0268" + "9c40" + "00" + "02" + "057a6f6e65" + "0261" + "00" + "00",
    ),
    "current assignment": (
        GroupRecord(
            StreamsGroupCurrentMemberAssignmentKey("g", "m"),
            StreamsGroupCurrentMemberAssignmentValue(
                3, 2, 1, [HeldTasks("0", [1], [3])], [HeldTasks("0", [2])], [], [], [], []
            ),
        ),
        "0016" + "0001" + "67" + "0001" + "6d",
        # Only the active task has the epoch at which it was assigned.
        "0000" + "00000003" + "00000002" + "01"
        "02" + "0230" + "02" + "00000001" + "01" + "00" + "05" + "02" + "00000003"
        "02" + "0230" + "02" + "00000002" + "00" + "01" * 4 + "00",
    ),
    "topology": (
        GroupRecord(
            StreamsGroupTopologyKey("g"),
            StreamsGroupTopologyValue(4, [Subtopology(subtopology_id="0", source_topics=["t"])]),
        ),
        "0017" + "0001" + "67",
        "0000" + "00000004" + "02" + "0230" + "02" + "0274" + "01" * 5 + "00" + "00",
    ),
}


@pytest.mark.parametrize(("record", "key", "value"), GOLDEN.values(), ids=GOLDEN)
def test_the_bytes_are_those_of_kafka(record: GroupRecord, key: str, value: str) -> None:
    encoded_key, encoded_value = records.encode(record)
    assert encoded_value is not None
    assert (encoded_key.hex(), encoded_value.hex()) == (key, value)
    assert records.decode(encoded_key, encoded_value) == record
