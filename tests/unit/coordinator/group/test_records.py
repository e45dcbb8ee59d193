"""The expected bytes were written by Kafka 4.3's own generated classes, type and version prefix included."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millbeck.coordinator.group.records import (
    GroupMember,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    OffsetCommitKey,
    OffsetCommitValue,
    decode,
    encode,
    group_tombstone,
    offset_commit,
    offset_tombstone,
)
from millbeck.wire import codec
from millbeck.wire.errors import DecodeError

OFFSET_KEY = bytes.fromhex("000100106f726465722d70726f636573736f727300066f726465727300000007")
GROUP_KEY = bytes.fromhex("000200106f726465722d70726f636573736f7273")
LEGACY_KEY = bytes.fromhex("000000016700017400000001")

OFFSET_VALUES = {
    0: "00000000011f71fb04cb000668c3a96c6c6f0000018bcfe56800",
    1: "00010000011f71fb04cb000668c3a96c6c6f0000018bcfe568000000018bcfee8fc0",
    2: "00020000011f71fb04cb000668c3a96c6c6f0000018bcfe56800",
    3: "00030000011f71fb04cb00000005000668c3a96c6c6f0000018bcfe56800",
    4: "00040000011f71fb04cb000000050768c3a96c6c6f0000018bcfe5680000",
}
OFFSET_VALUE_WITH_ID = "0004000000000000002affffffff010000018bcfe5680001001001020304050607081112131415161718"

GROUP_VALUES = {
    0: "00000008636f6e73756d657200000009000572616e67650003632d31000000020003632d31000163000a2f3132372e302e302e31"
    "0000afc8000000030001020000000203040003632d3200000000000017700000000000000000",
    1: "00010008636f6e73756d657200000009000572616e67650003632d31000000020003632d31000163000a2f3132372e302e302e31"
    "000493e00000afc8000000030001020000000203040003632d3200000000ffffffff000017700000000000000000",
    2: "00020008636f6e73756d657200000009000572616e67650003632d310000018bcfe56800000000020003632d31000163000a2f3132"
    "372e302e302e31000493e00000afc8000000030001020000000203040003632d3200000000ffffffff000017700000000000000000",
    3: "00030008636f6e73756d657200000009000572616e67650003632d310000018bcfe56800000000020003632d310003692d310001"
    "63000a2f3132372e302e302e31000493e00000afc8000000030001020000000203040003632d32ffff00000000ffffffff000017700"
    "000000000000000",
    4: "000409636f6e73756d6572000000090672616e676504632d310000018bcfe568000304632d3104692d3102630b2f3132372e302e30"
    "2e31000493e00000afc8040001020303040004632d32000101ffffffff0000177001010000",
}
EMPTY_GROUP_VALUE = "0003000000000000ffffffffffffffffffffffff00000000"


def offset_value(version: int) -> OffsetCommitValue:
    return OffsetCommitValue(
        offset=1234567890123,
        leader_epoch=5 if version >= 3 else -1,
        metadata="héllo",
        commit_timestamp=1700000000000,
        expire_timestamp=1700000600000 if version == 1 else -1,
    )


def group_value(version: int) -> GroupMetadataValue:
    first = GroupMember(
        "c-1",
        "i-1" if version >= 3 else None,
        "c",
        "/127.0.0.1",
        300000 if version >= 1 else -1,
        45000,
        b"\x00\x01\x02",
        b"\x03\x04",
    )
    second = GroupMember("c-2", None, "", "", -1, 6000, b"", b"")
    timestamp = 1700000000000 if version >= 2 else -1
    return GroupMetadataValue("consumer", 9, "range", "c-1", timestamp, [first, second])


@pytest.mark.parametrize("version", OFFSET_VALUES)
def test_offset_commits_of_every_version_are_read(version: int) -> None:
    record = decode(OFFSET_KEY, bytes.fromhex(OFFSET_VALUES[version]))
    assert record == GroupRecord(OffsetCommitKey("order-processors", "orders", 7), offset_value(version))
    assert codec.encoder(OffsetCommitValue, version)(offset_value(version)).hex() == OFFSET_VALUES[version][4:]


@pytest.mark.parametrize("version", GROUP_VALUES)
def test_group_metadata_of_every_version_is_read(version: int) -> None:
    record = decode(GROUP_KEY, bytes.fromhex(GROUP_VALUES[version]))
    assert record == GroupRecord(GroupMetadataKey("order-processors"), group_value(version))
    assert codec.encoder(GroupMetadataValue, version)(group_value(version)).hex() == GROUP_VALUES[version][4:]


def test_offset_commits_are_written_with_the_topic_id() -> None:
    record = offset_commit(
        group_id="order-processors",
        topic="orders",
        partition=7,
        offset=42,
        leader_epoch=-1,
        metadata="",
        commit_timestamp=1700000000000,
        topic_id=bytes.fromhex("01020304050607081112131415161718"),
    )
    assert encode(record) == (OFFSET_KEY, bytes.fromhex(OFFSET_VALUE_WITH_ID))


def test_an_expiry_of_its_own_is_written_with_version_1() -> None:
    record = GroupRecord(OffsetCommitKey("order-processors", "orders", 7), offset_value(1))
    assert encode(record) == (OFFSET_KEY, bytes.fromhex(OFFSET_VALUES[1]))


def test_group_metadata_is_written_with_version_3() -> None:
    record = GroupRecord(GroupMetadataKey("order-processors"), group_value(3))
    assert encode(record) == (GROUP_KEY, bytes.fromhex(GROUP_VALUES[3]))
    empty = GroupRecord(GroupMetadataKey("order-processors"), GroupMetadataValue("", 0, None, None, -1, []))
    assert encode(empty)[1] == bytes.fromhex(EMPTY_GROUP_VALUE)


def test_tombstones_have_no_value() -> None:
    assert encode(offset_tombstone("order-processors", "orders", 7)) == (OFFSET_KEY, None)
    assert encode(group_tombstone("order-processors")) == (GROUP_KEY, None)
    assert decode(GROUP_KEY, None) == group_tombstone("order-processors")


def test_the_oldest_keys_are_offset_commits() -> None:
    record = decode(LEGACY_KEY, bytes.fromhex(OFFSET_VALUES[0]))
    assert record == GroupRecord(OffsetCommitKey("g", "t", 1), offset_value(0))


def test_types_of_other_protocols_are_not_ours() -> None:
    assert decode(b"\x00\x63" + b"anything", b"\x00\x00") is None


MALFORMED = {
    "no type": (b"\x00", None),
    "short key": (OFFSET_KEY[:-1], None),
    "long key": (OFFSET_KEY + b"\x00", None),
    "no version": (GROUP_KEY, b"\x00"),
    "version from the future": (GROUP_KEY, b"\x00\x05"),
    "negative version": (GROUP_KEY, b"\xff\xff"),
    "short value": (GROUP_KEY, bytes.fromhex(GROUP_VALUES[3])[:-1]),
}


@pytest.mark.parametrize(("key", "value"), MALFORMED.values(), ids=MALFORMED.keys())
def test_malformed_bytes_raise_one_error(key: bytes, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode(key, value)


@given(key=st.binary(max_size=40), value=st.none() | st.binary(max_size=80))
def test_random_bytes_are_read_or_refused(key: bytes, value: bytes | None) -> None:
    try:
        record = decode(key, value)
    except DecodeError:
        return
    assert record is None or isinstance(record, GroupRecord)
