"""Framing of a metadata record as a log record's value: frame version, type and version as unsigned varints, body.

The version of a record depends on the cluster's ``metadata.version``, and for a broker registration change also on its
fields: like Kafka, the lowest version that can represent it is written.
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
    """Encode the record in the version for ``metadata_version``."""
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
    """Decode a log record's value; raises `MetadataFault` if its frame, type, version or content is not supported."""
    try:
        frame_version, position = read_unsigned_varint(value, 0)
        if frame_version != FRAME_VERSION:
            raise MetadataFault(f"unsupported metadata frame version {frame_version}; supported is {FRAME_VERSION}")
        record_type, position = read_unsigned_varint(value, position)
        version, position = read_unsigned_varint(value, position)
        cls = RECORD_TYPES.get(record_type)
        if cls is None:
            raise MetadataFault(f"metadata record of unknown type {record_type}")
        if version not in schema_of(cls).versions:
            raise MetadataFault(f"unsupported {cls.__name__} version {version}")
        record, position = decoder(cls, version)(value, position)
    except DecodeError as error:
        raise MetadataFault(f"cannot decode metadata record: {error}") from error
    if position != len(value):
        raise MetadataFault(f"{len(value) - position} trailing bytes in a {cls.__name__}")
    return record


def version_of(record: MetadataRecord, metadata_version: int) -> int:
    """The version in which Kafka writes the record at that ``metadata.version``."""
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
