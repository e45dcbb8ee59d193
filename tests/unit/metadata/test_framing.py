"""Frames: what is written under which metadata version, and what is refused on reading."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.framing import decode, encode, version_of
from millbeck.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)

TOPIC = TopicRecord(name="orders", topic_id=b"\x01" * 16)
DIRECTORY = b"\x05" * 16

VERSIONS = {
    "broker at 4.3": (RegisterBrokerRecord(), 30, 4),
    "broker at 3.7-IV2": (RegisterBrokerRecord(), 17, 3),
    "broker at 3.4": (RegisterBrokerRecord(), 8, 2),
    "broker at 3.3": (RegisterBrokerRecord(), 7, 1),
    "partition at 4.0-IV1": (PartitionRecord(), 23, 2),
    "partition at 4.0-IV0": (PartitionRecord(), 22, 1),
    "partition at 3.6": (PartitionRecord(), 14, 0),
    "change at 4.3": (PartitionChangeRecord(), 30, 2),
    "change at 3.7": (PartitionChangeRecord(), 17, 1),
    "fencing alone": (BrokerRegistrationChangeRecord(fenced=1), 30, 0),
    "shutdown": (BrokerRegistrationChangeRecord(in_controlled_shutdown=1), 30, 1),
    "directories": (BrokerRegistrationChangeRecord(log_dirs=[DIRECTORY]), 30, 2),
    "cordoned": (BrokerRegistrationChangeRecord(cordoned_log_dirs=[]), 30, 3),
    "cordoned before its time": (BrokerRegistrationChangeRecord(cordoned_log_dirs=[]), 29, 0),
    "anything else": (TOPIC, 30, 0),
}


@pytest.mark.parametrize(("record", "metadata_version", "expected"), VERSIONS.values(), ids=VERSIONS.keys())
def test_the_version_is_the_one_kafka_chooses(record: MetadataRecord, metadata_version: int, expected: int) -> None:
    assert version_of(record, metadata_version) == expected
    assert encode(record, metadata_version)[2] == expected


def test_a_frame_is_version_type_version_and_body() -> None:
    assert encode(TOPIC) == b"\x01\x02\x00" + b"\x07orders" + b"\x01" * 16 + b"\x00"
    assert decode(encode(TOPIC)) == TOPIC
    assert decode(memoryview(encode(NoOpRecord()))) == NoOpRecord()


def test_what_an_older_cluster_has_no_room_for_is_left_out() -> None:
    record = PartitionRecord(partition_id=0, replicas=[1], directories=[DIRECTORY], eligible_leader_replicas=[1])
    read = decode(encode(record, 14))
    assert isinstance(read, PartitionRecord)
    assert (read.directories, read.eligible_leader_replicas, read.replicas) == ([], None, [1])


REFUSED = {
    "nothing": b"",
    "other frame version": b"\x02\x02\x00",
    "unknown type": b"\x01\x06\x00",
    "type of the future": b"\x01\x1d\x00",
    "unknown version": b"\x01\x02\x01",
    "cut off": encode(TOPIC)[:-1],
    "left over": encode(TOPIC) + b"\x00",
    "not text": b"\x01\x02\x00\x02\xff" + bytes(17),
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_not_fully_understood_is_a_fault(value: bytes) -> None:
    with pytest.raises(MetadataFault):
        decode(value)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_a_record_or_a_fault(value: bytes) -> None:
    try:
        record = decode(b"\x01" + value)
    except MetadataFault:
        return
    assert decode(encode(record)) is not None
