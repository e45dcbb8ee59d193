"""The records of ``__consumer_offsets``: a typed key, and a value, which is null for a tombstone.

A key is its type as int16 and its fields, never tagged ones. A value is its version as int16 and its fields.
Offset commits are written with version 4, which carries the topic's id, or with version 1 when an old client asked for
an expiration time; group metadata with version 3; all others with version 0. Every older version is read. The
records of consumer, share and streams groups are declared in ``consumer/records.py``, ``share/records.py`` and
``streams/records.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any

from millbeck.coordinator.group.consumer.records import DECLARED as CONSUMER_RECORDS
from millbeck.coordinator.group.consumer.records import ConsumerKey, ConsumerValue
from millbeck.coordinator.group.share.records import DECLARED as SHARE_RECORDS
from millbeck.coordinator.group.share.records import ShareGroupKey, ShareGroupValue
from millbeck.coordinator.group.streams.records import DECLARED as STREAMS_RECORDS
from millbeck.coordinator.group.streams.records import StreamsGroupKey, StreamsGroupValue
from millbeck.kernel.ids import ZERO_UUID
from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, array, bytes_, int32, int64, message, string, struct, uuid

NO_TIMESTAMP = -1
NO_LEADER_EPOCH = -1

LEGACY_OFFSET_COMMIT_TYPE = 0
OFFSET_COMMIT_TYPE = 1
GROUP_METADATA_TYPE = 2

OFFSET_COMMIT_VERSION = 4
OFFSET_COMMIT_VERSION_WITH_EXPIRY = 1
GROUP_METADATA_VERSION = 3
VALUE_VERSION_MAX = 4

_INT16 = Struct(">h")


@message(kind=Kind.DATA, versions="0", flexible="none")
class OffsetCommitKey:
    """Group and partition of a committed offset."""

    group: str = string()
    topic: str = string()
    partition: int = int32()


@message(kind=Kind.DATA, versions="0-4", flexible="4+")
class OffsetCommitValue:
    """A group's committed offset of one partition."""

    offset: int = int64(doc="The next offset the group will read.")
    leader_epoch: int = int32(versions="3+", default=-1, ignorable=True, doc="Leader epoch of the last record read.")
    metadata: str = string(doc="Metadata set by the client.")
    commit_timestamp: int = int64()
    expire_timestamp: int = int64(versions="1", default=-1, ignorable=True, doc="Set by clients older than 2.1.")
    topic_id: bytes = uuid(versions="4+", tag=0, ignorable=True, doc="Id of the topic, if known.")


@message(kind=Kind.DATA, versions="0", flexible="none")
class GroupMetadataKey:
    group: str = string()


@struct
class GroupMember:
    """One member of a classic group as of its last completed rebalance."""

    member_id: str = string()
    group_instance_id: str | None = string(versions="3+", nullable="3+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    rebalance_timeout: int = int32(versions="1+", default=-1, ignorable=True)
    session_timeout: int = int32()
    subscription: bytes = bytes_(doc="The member's metadata for the chosen protocol.")
    assignment: bytes = bytes_()


@message(kind=Kind.DATA, versions="0-4", flexible="4+")
class GroupMetadataValue:
    """A classic group's generation: written when its leader has sent the assignment, and when it becomes empty."""

    protocol_type: str = string()
    generation: int = int32()
    protocol: str | None = string(nullable="0+")
    leader: str | None = string(nullable="0+")
    current_state_timestamp: int = int64(versions="2+", default=-1, ignorable=True)
    members: list[GroupMember] = array(of=GroupMember)


Key = OffsetCommitKey | GroupMetadataKey | ConsumerKey | ShareGroupKey | StreamsGroupKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerValue | ShareGroupValue | StreamsGroupValue

_DECLARED: tuple[tuple[int, type[Any], type[Any]], ...] = (
    (LEGACY_OFFSET_COMMIT_TYPE, OffsetCommitKey, OffsetCommitValue),
    (OFFSET_COMMIT_TYPE, OffsetCommitKey, OffsetCommitValue),
    (GROUP_METADATA_TYPE, GroupMetadataKey, GroupMetadataValue),
    *CONSUMER_RECORDS,
    *SHARE_RECORDS,
    *STREAMS_RECORDS,
)
_KEYS: dict[int, type[Any]] = {number: key for number, key, _ in _DECLARED}
_VALUES: dict[type[Any], type[Any]] = {key: value for _, key, value in _DECLARED}
# A key class declared with two types is written with the later one.
_TYPES: dict[type[Any], int] = {key: number for number, key, _ in _DECLARED}


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """One record: ``value`` has the class that matches the key, or is None for a tombstone."""

    key: Key
    value: Value | None


def encode(record: GroupRecord) -> tuple[bytes, bytes | None]:
    """Serialize the key and value."""
    key_class = type(record.key)
    key = _INT16.pack(_TYPES[key_class]) + codec.encoder(key_class, 0)(record.key)
    if record.value is None:
        return key, None
    value_class = type(record.value)
    version = _version(record.value)
    return key, _INT16.pack(version) + codec.encoder(value_class, version)(record.value)


def _version(value: Value) -> int:
    if isinstance(value, GroupMetadataValue):
        return GROUP_METADATA_VERSION
    if not isinstance(value, OffsetCommitValue):
        return 0
    return OFFSET_COMMIT_VERSION if value.expire_timestamp == NO_TIMESTAMP else OFFSET_COMMIT_VERSION_WITH_EXPIRY


def decode(key: bytes, value: bytes | None) -> GroupRecord | None:
    """Deserialize a record; None if its type is unknown. Raises DecodeError for malformed bytes."""
    if len(key) < 2:
        raise DecodeError("record key is too short for a type")
    key_class = _KEYS.get(_INT16.unpack_from(key)[0])
    if key_class is None:
        return None
    decoded_key, end = codec.decoder(key_class, 0)(key, 2)
    if end != len(key):
        raise DecodeError(f"{len(key) - end} trailing bytes in a {key_class.__name__}")
    if value is None:
        return GroupRecord(decoded_key, None)
    if len(value) < 2:
        raise DecodeError("record value is too short for a version")
    value_class = _VALUES[key_class]
    version = _INT16.unpack_from(value)[0]
    if not 0 <= version <= VALUE_VERSION_MAX:
        raise DecodeError(f"unsupported {value_class.__name__} version {version}")
    # Ignore trailing bytes: a newer version may append fields.
    return GroupRecord(decoded_key, codec.decoder(value_class, version)(value, 2)[0])


def offset_commit(
    *,
    group_id: str,
    topic: str,
    partition: int,
    offset: int,
    leader_epoch: int,
    metadata: str,
    commit_timestamp: int,
    expire_timestamp: int = NO_TIMESTAMP,
    topic_id: bytes = ZERO_UUID,
) -> GroupRecord:
    return GroupRecord(
        OffsetCommitKey(group_id, topic, partition),
        OffsetCommitValue(offset, leader_epoch, metadata, commit_timestamp, expire_timestamp, topic_id),
    )


def offset_tombstone(group_id: str, topic: str, partition: int) -> GroupRecord:
    return GroupRecord(OffsetCommitKey(group_id, topic, partition), None)


def group_tombstone(group_id: str) -> GroupRecord:
    return GroupRecord(GroupMetadataKey(group_id), None)
