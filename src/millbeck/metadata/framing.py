"""A metadata record as the value of a log record: frame version, type and version as unsigned varints, then the body.

Which version of a record is written depends on the cluster's ``metadata.version``, and for a broker's change also on
what it says: Kafka writes the lowest version that can carry it, and so do we.
"""

from __future__ import annotations

from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.features import (
    CORDONED_DIRECTORIES_FROM,
    DIRECTORY_ASSIGNMENT_FROM,
    ELIGIBLE_LEADER_REPLICAS_FROM,
    LATEST_METADATA_VERSION,
)
from millbeck.metadata.records import (
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import schema_of
from millbeck.wire.varint import read_unsigned_varint, unsigned_varint

FRAME_VERSION = 1


def encode(record: MetadataRecord, metadata_version: int = LATEST_METADATA_VERSION) -> bytes:
    """The value of the log record, in the version that ``metadata_version`` asks for."""
    version = version_of(record, metadata_version)
    schema = schema_of(type(record))
    assert schema.api_key is not None
    return b"".join(
        (
            unsigned_varint(FRAME_VERSION),
            unsigned_varint(schema.api_key),
            unsigned_varint(version),
            encoder(type(record), version)(record),
        )
    )


def decode(value: bytes | memoryview) -> MetadataRecord:
    """The record in a log record's value; `MetadataFault` for anything this release does not know in full."""
    try:
        frame_version, position = read_unsigned_varint(value, 0)
        if frame_version != FRAME_VERSION:
            raise MetadataFault(f"metadata record with frame version {frame_version}; known is {FRAME_VERSION}")
        record_type, position = read_unsigned_varint(value, position)
        version, position = read_unsigned_varint(value, position)
        cls = RECORD_TYPES.get(record_type)
        if cls is None:
            raise MetadataFault(f"metadata record of unknown type {record_type}")
        if version not in schema_of(cls).versions:
            raise MetadataFault(f"{cls.__name__} in unknown version {version}")
        record, position = decoder(cls, version)(value, position)
    except DecodeError as error:
        raise MetadataFault(f"metadata record that can not be read: {error}") from error
    if position != len(value):
        raise MetadataFault(f"{cls.__name__} with {len(value) - position} bytes left over")
    return record


def version_of(record: MetadataRecord, metadata_version: int) -> int:
    """The version in which Kafka would write the record under that ``metadata.version``."""
    match record:
        case RegisterBrokerRecord():
            if metadata_version >= CORDONED_DIRECTORIES_FROM:
                return 4
            if metadata_version >= DIRECTORY_ASSIGNMENT_FROM:
                return 3
            return 2 if metadata_version >= 8 else 1
        case PartitionRecord() | PartitionChangeRecord():
            if metadata_version >= ELIGIBLE_LEADER_REPLICAS_FROM:
                return 2
            return 1 if metadata_version >= DIRECTORY_ASSIGNMENT_FROM else 0
        case BrokerRegistrationChangeRecord():
            if record.cordoned_log_dirs is not None and metadata_version >= CORDONED_DIRECTORIES_FROM:
                return 3
            if record.log_dirs and metadata_version >= DIRECTORY_ASSIGNMENT_FROM:
                return 2
            return 1 if record.in_controlled_shutdown else 0
        case _:
            return 0
