"""The records of ``__share_group_state``: snapshots of a share partition's state, and updates to it.

A key is its type as int16 and its fields, a value its version as int16 and its fields, as in the other internal topics.
An update contains only changes since the record before it, so older records of a key are needed until a newer snapshot
supersedes them: this topic is never compacted; its start is deleted instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import Any, Final

from millbeck.coordinator.share.states import StateBatch
from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, array, int8, int16, int32, int64, message, string, struct, uuid

SNAPSHOT_TYPE: Final = 0
UPDATE_TYPE: Final = 1
VALUE_VERSION: Final = 0
UNKNOWN_COUNT: Final = -1

_INT16: Final = Struct(">h")


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareSnapshotKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


@message(kind=Kind.DATA, versions="0", flexible="none")
class ShareUpdateKey:
    group_id: str = string()
    topic_id: bytes = uuid()
    partition: int = int32()


@struct
class RecordedBatch:
    first_offset: int = int64()
    last_offset: int = int64()
    delivery_state: int = int8()
    delivery_count: int = int16()


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareSnapshotValue:
    """The full state of a share partition."""

    snapshot_epoch: int = int32()
    state_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64(doc="-1 if not initialized.")
    create_timestamp: int = int64()
    write_timestamp: int = int64()
    state_batches: list[RecordedBatch] = array(of=RecordedBatch)
    delivery_complete_count: int = int32(tag=0, default=-1)


@message(kind=Kind.DATA, versions="0", flexible="0+")
class ShareUpdateValue:
    """Changes since the snapshot with the same epoch, or since the update before this one."""

    snapshot_epoch: int = int32()
    leader_epoch: int = int32()
    start_offset: int = int64(doc="-1 if unchanged.")
    state_batches: list[RecordedBatch] = array(of=RecordedBatch)
    delivery_complete_count: int = int32(tag=0, default=-1)


Key = ShareSnapshotKey | ShareUpdateKey
Value = ShareSnapshotValue | ShareUpdateValue

_KEYS: Final[dict[int, type[Any]]] = {SNAPSHOT_TYPE: ShareSnapshotKey, UPDATE_TYPE: ShareUpdateKey}
_VALUES: Final[dict[type[Any], type[Any]]] = {
    ShareSnapshotKey: ShareSnapshotValue,
    ShareUpdateKey: ShareUpdateValue,
}
_TYPES: Final[dict[type[Any], int]] = {ShareSnapshotKey: SNAPSHOT_TYPE, ShareUpdateKey: UPDATE_TYPE}


@dataclass(frozen=True, slots=True)
class ShareRecord:
    """One record: ``value`` has the class that matches the key, or is None for a tombstone."""

    key: Key
    value: Value | None


def recorded(batches: list[StateBatch] | tuple[StateBatch, ...]) -> list[RecordedBatch]:
    return [RecordedBatch(*batch) for batch in batches]


def batches_of(value: Value) -> list[StateBatch]:
    return [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
        for each in value.state_batches
    ]


def encode(record: ShareRecord) -> tuple[bytes, bytes | None]:
    """Serialize the key and value."""
    key_class = type(record.key)
    key = _INT16.pack(_TYPES[key_class]) + codec.encoder(key_class, 0)(record.key)
    if record.value is None:
        return key, None
    return key, _INT16.pack(VALUE_VERSION) + codec.encoder(type(record.value), VALUE_VERSION)(record.value)


def decode(key: bytes, value: bytes | None) -> ShareRecord | None:
    """Deserialize a record; None if its type is unknown. Raises DecodeError for malformed bytes."""
    if len(key) < _INT16.size:
        raise DecodeError("record key is too short for a type")
    key_class = _KEYS.get(_INT16.unpack_from(key)[0])
    if key_class is None:
        return None
    decoded_key, end = codec.decoder(key_class, 0)(key, _INT16.size)
    if end != len(key):
        raise DecodeError(f"{len(key) - end} trailing bytes in a {key_class.__name__}")
    if value is None:
        return ShareRecord(decoded_key, None)
    if len(value) < _INT16.size:
        raise DecodeError("record value is too short for a version")
    value_class = _VALUES[key_class]
    version = _INT16.unpack_from(value)[0]
    if version != VALUE_VERSION:
        raise DecodeError(f"unsupported {value_class.__name__} version {version}")
    # Ignore trailing bytes: a newer version may append fields.
    return ShareRecord(decoded_key, codec.decoder(value_class, VALUE_VERSION)(value, _INT16.size)[0])
