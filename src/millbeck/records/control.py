"""Control records: transaction markers, and the metadata log's own records.

The key of a control record is a version and a type; the value depends on the type. A transaction marker ends a
producer's transaction on a partition; the other types belong to the metadata log. Their values are flexible messages
with the version as first field; they are encoded by hand here, since `records` and `wire` do not import each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct, error
from typing import Final

from millbeck.kernel.errors import CorruptMessage
from millbeck.kernel.ids import ZERO_UUID, Uuid
from millbeck.records import batch as batches
from millbeck.records.record import Record

_KEY: Final = Struct(">hh")
_MARKER: Final = Struct(">hi")
_INT16: Final = Struct(">h")
_UINT16: Final = Struct(">H")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_NO_TAGS: Final = b"\x00"


class ControlType(IntEnum):
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    """The result of a transaction on one partition."""

    committed: bool
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterId:
    node_id: int
    directory_id: Uuid = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderChange:
    """The first record of a new leader's epoch. Version 1 has directory ids, version 0 omits them."""

    leader_id: int
    voters: tuple[VoterId, ...]
    granting_voters: tuple[VoterId, ...]
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotHeader:
    last_contained_log_timestamp: int
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFooter:
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftVersion:
    kraft_version: int
    version: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterEndpoint:
    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voter:
    node_id: int
    directory_id: Uuid
    endpoints: tuple[VoterEndpoint, ...]
    kraft_version_min: int = 0
    kraft_version_max: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Voters:
    voters: tuple[Voter, ...]
    version: int = 0


ControlValue = EndTransaction | LeaderChange | SnapshotHeader | SnapshotFooter | KRaftVersion | Voters


def control_key(control_type: ControlType) -> bytes:
    """The key of a control record of this type."""
    return _KEY.pack(0, control_type)


def control_type_of(key: bytes | None) -> ControlType | None:
    """The type in a control record's key; None for an unknown (newer) type, which readers skip."""
    if key is None or len(key) < _KEY.size:
        raise CorruptMessage("control record has no type in its key")
    version, number = _KEY.unpack_from(key)
    if version < 0:
        raise CorruptMessage(f"control record's key has version {version}")
    return ControlType(number) if number in ControlType.__members__.values() else None


def encode(value: ControlValue) -> tuple[bytes, bytes]:
    """Encode a control record; returns its key and value."""
    match value:
        case EndTransaction():
            kind = ControlType.COMMIT if value.committed else ControlType.ABORT
            return control_key(kind), _MARKER.pack(0, value.coordinator_epoch)
        case LeaderChange():
            return control_key(ControlType.LEADER_CHANGE), _encode_leader_change(value)
        case SnapshotHeader():
            body = _INT16.pack(value.version) + _INT64.pack(value.last_contained_log_timestamp) + _NO_TAGS
            return control_key(ControlType.SNAPSHOT_HEADER), body
        case SnapshotFooter():
            return control_key(ControlType.SNAPSHOT_FOOTER), _INT16.pack(value.version) + _NO_TAGS
        case KRaftVersion():
            body = _INT16.pack(value.version) + _INT16.pack(value.kraft_version) + _NO_TAGS
            return control_key(ControlType.KRAFT_VERSION), body
        case Voters():
            return control_key(ControlType.KRAFT_VOTERS), _encode_voters(value)


def decode(record: Record) -> ControlValue | None:
    """Decode a control record; None for an unknown (newer) type. Raises `CorruptMessage`."""
    kind = control_type_of(record.key)
    if kind is None:
        return None
    reader = _Reader(record.value or b"")
    try:
        return _decode_value(kind, reader)
    except (error, IndexError, UnicodeDecodeError) as cause:
        raise CorruptMessage(f"{kind.name} control record is malformed: {cause}") from cause


def _decode_value(kind: ControlType, reader: _Reader) -> ControlValue:
    version = reader.int16()
    if version < 0:
        raise CorruptMessage(f"{kind.name} control record has version {version}")
    match kind:
        case ControlType.ABORT | ControlType.COMMIT:
            return EndTransaction(committed=kind is ControlType.COMMIT, coordinator_epoch=reader.int32())
        case ControlType.LEADER_CHANGE:
            leader_id = reader.int32()
            voters = tuple(_read_voter_id(reader, version) for _ in range(reader.array_length()))
            granting = tuple(_read_voter_id(reader, version) for _ in range(reader.array_length()))
            return LeaderChange(leader_id=leader_id, voters=voters, granting_voters=granting, version=version)
        case ControlType.SNAPSHOT_HEADER:
            return SnapshotHeader(last_contained_log_timestamp=reader.int64(), version=version)
        case ControlType.SNAPSHOT_FOOTER:
            return SnapshotFooter(version=version)
        case ControlType.KRAFT_VERSION:
            return KRaftVersion(kraft_version=reader.int16(), version=version)
        case ControlType.KRAFT_VOTERS:
            return Voters(voters=tuple(_read_voter(reader) for _ in range(reader.array_length())), version=version)


def control_batch(
    values: list[ControlValue],
    *,
    base_offset: int,
    timestamp: int,
    partition_leader_epoch: int,
) -> bytes:
    """Build a control batch of the metadata log or of a snapshot."""
    records = [Record(-1, timestamp, *encode(value)) for value in values]
    return batches.build(
        records, base_offset=base_offset, partition_leader_epoch=partition_leader_epoch, is_control=True
    )


def marker_batch(
    marker: EndTransaction,
    *,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    partition_leader_epoch: int = batches.NO_LEADER_EPOCH,
) -> bytes:
    """Build the batch with the marker that ends a producer's transaction on a partition; it takes one offset."""
    return batches.build(
        [Record(-1, timestamp, *encode(marker))],
        base_offset=base_offset,
        partition_leader_epoch=partition_leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=True,
        is_control=True,
    )


def _encode_leader_change(value: LeaderChange) -> bytes:
    parts = [_INT16.pack(value.version), _INT32.pack(value.leader_id)]
    for voters in (value.voters, value.granting_voters):
        parts.append(_unsigned_varint(len(voters) + 1))
        for voter in voters:
            parts.append(_INT32.pack(voter.node_id))
            if value.version >= 1:
                parts.append(voter.directory_id)
            parts.append(_NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _encode_voters(value: Voters) -> bytes:
    parts = [_INT16.pack(value.version), _unsigned_varint(len(value.voters) + 1)]
    for voter in value.voters:
        parts += (_INT32.pack(voter.node_id), voter.directory_id, _unsigned_varint(len(voter.endpoints) + 1))
        for endpoint in voter.endpoints:
            for text in (endpoint.name.encode(), endpoint.host.encode()):
                parts += (_unsigned_varint(len(text) + 1), text)
            parts += (_UINT16.pack(endpoint.port), _NO_TAGS)
        feature = _INT16.pack(voter.kraft_version_min) + _INT16.pack(voter.kraft_version_max) + _NO_TAGS
        parts += (feature, _NO_TAGS)
    parts.append(_NO_TAGS)
    return b"".join(parts)


def _read_voter_id(reader: _Reader, version: int) -> VoterId:
    node_id = reader.int32()
    directory_id = reader.uuid() if version >= 1 else ZERO_UUID
    reader.skip_tags()
    return VoterId(node_id=node_id, directory_id=directory_id)


def _read_voter(reader: _Reader) -> Voter:
    node_id = reader.int32()
    directory_id = reader.uuid()
    endpoints = tuple(_read_endpoint(reader) for _ in range(reader.array_length()))
    version_min, version_max = reader.int16(), reader.int16()
    reader.skip_tags()
    reader.skip_tags()
    return Voter(
        node_id=node_id,
        directory_id=directory_id,
        endpoints=endpoints,
        kraft_version_min=version_min,
        kraft_version_max=version_max,
    )


def _read_endpoint(reader: _Reader) -> VoterEndpoint:
    endpoint = VoterEndpoint(name=reader.text(), host=reader.text(), port=reader.uint16())
    reader.skip_tags()
    return endpoint


def _unsigned_varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


class _Reader:
    """A cursor over one value. At its end it raises ``struct.error`` or `IndexError`, which `decode` translates."""

    __slots__ = ("_data", "_position")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def _number(self, form: Struct) -> int:
        number: int = form.unpack_from(self._data, self._position)[0]
        self._position += form.size
        return number

    def int16(self) -> int:
        return self._number(_INT16)

    def uint16(self) -> int:
        return self._number(_UINT16)

    def int32(self) -> int:
        return self._number(_INT32)

    def int64(self) -> int:
        return self._number(_INT64)

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._position:
            raise IndexError(f"{size} bytes expected, {len(self._data) - self._position} left")
        taken = self._data[self._position : self._position + size]
        self._position += size
        return taken

    def uuid(self) -> Uuid:
        return self._take(16)

    def unsigned_varint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise IndexError("a varint is too long")

    def array_length(self) -> int:
        """Read an array length. An element has at least one byte, so a false length is rejected before any
        allocation.
        """
        length = self.unsigned_varint() - 1
        if length < 0 or length > len(self._data) - self._position:
            raise IndexError(f"array has an invalid length of {length} elements")
        return length

    def text(self) -> str:
        length = self.unsigned_varint() - 1
        if length < 0:
            raise IndexError("a string is null")
        return self._take(length).decode()

    def skip_tags(self) -> None:
        for _ in range(self.unsigned_varint()):
            self.unsigned_varint()
            self._take(self.unsigned_varint())
