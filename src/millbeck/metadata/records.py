"""The record types of the metadata log, one class each for all versions, as Kafka 4.3 writes them.

Each record is one change of the cluster metadata; all of them together are its state. This module only declares the
fields; `framing` encodes and decodes them, `delta` applies each to an image. ``RECORD_TYPES`` maps the type number in
the frame to the class. Fields that an older ``metadata.version`` does not support are ignorable: a cluster at that
level cannot have them set.
"""

from __future__ import annotations

from typing import get_args

from millbeck.wire.schema import (
    Kind,
    array,
    boolean,
    bytes_,
    float64,
    int8,
    int16,
    int32,
    int64,
    message,
    schema_of,
    string,
    struct,
    uint16,
    uuid,
)

NO_LEADER = -1
NO_LEADER_CHANGE = -2


@struct
class RecordedEndpoint:
    """The endpoint of one listener of a node."""

    name: str = string(doc="Listener name.")
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16(doc="0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL.")


@struct
class RecordedFeature:
    """The range of levels of a feature that a node supports."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(kind=Kind.RECORD, api_key=0, versions="0-4", flexible="0+")
class RegisterBrokerRecord:
    """A broker registered; its epoch is this record's offset. It starts fenced."""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean(versions="2+", doc="Always false; used in ZooKeeper migrations.")
    incarnation_id: bytes = uuid(doc="Random id of the process.")
    broker_epoch: int = int64()
    end_points: list[RecordedEndpoint] = array(of=RecordedEndpoint)
    features: list[RecordedFeature] = array(of=RecordedFeature)
    rack: str | None = string(nullable="0+")
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean(versions="1+", ignorable=True)
    log_dirs: list[bytes] = array(
        of=uuid, versions="3+", tag=0, ignorable=True, doc="Ids of the log directories that are online."
    )
    cordoned_log_dirs: list[bytes] | None = array(
        of=uuid,
        versions="4+",
        nullable="4+",
        tag=1,
        default=None,
        ignorable=True,
        doc="Null if unknown.",
    )


@message(kind=Kind.RECORD, api_key=1, versions="0", flexible="0+")
class UnregisterBrokerRecord:
    """A broker was unregistered."""

    broker_id: int = int32()
    broker_epoch: int = int64()


@message(kind=Kind.RECORD, api_key=2, versions="0", flexible="0+")
class TopicRecord:
    """A topic was created; its configs and partitions follow."""

    name: str = string()
    topic_id: bytes = uuid()


@message(kind=Kind.RECORD, api_key=3, versions="0-2", flexible="0+")
class PartitionRecord:
    """The full state of a partition: on creation, and in snapshots."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(of=int32, doc="In order of preference.")
    isr: list[int] = array(of=int32)
    removing_replicas: list[int] = array(of=int32)
    adding_replicas: list[int] = array(of=int32)
    leader: int = int32(default=NO_LEADER)
    leader_recovery_state: int = int8(tag=0, doc="1 while recovering from an unclean election.")
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[bytes] = array(
        of=uuid, versions="1+", ignorable=True, doc="The log directory of each replica, in the same order."
    )
    eligible_leader_replicas: list[int] | None = array(
        of=int32, versions="2+", nullable="2+", tag=1, default=None, ignorable=True
    )
    last_known_elr: list[int] | None = array(
        of=int32, versions="2+", nullable="2+", tag=2, default=None, ignorable=True
    )


@message(kind=Kind.RECORD, api_key=4, versions="0", flexible="0+")
class ConfigRecord:
    """One config of a resource was set, or deleted if the value is null."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+")


@message(kind=Kind.RECORD, api_key=5, versions="0-2", flexible="0+")
class PartitionChangeRecord:
    """A change of a partition. A record with a leader, even the same one, bumps the leader epoch."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(of=int32, nullable="0+", tag=0, default=None)
    leader: int = int32(tag=1, default=NO_LEADER_CHANGE)
    replicas: list[int] | None = array(of=int32, nullable="0+", tag=2, default=None)
    removing_replicas: list[int] | None = array(of=int32, nullable="0+", tag=3, default=None)
    adding_replicas: list[int] | None = array(of=int32, nullable="0+", tag=4, default=None)
    leader_recovery_state: int = int8(tag=5, default=-1)
    directories: list[bytes] | None = array(of=uuid, versions="1+", nullable="1+", tag=8, default=None, ignorable=True)
    eligible_leader_replicas: list[int] | None = array(
        of=int32, versions="2+", nullable="2+", tag=6, default=None, ignorable=True
    )
    last_known_elr: list[int] | None = array(
        of=int32, versions="2+", nullable="2+", tag=7, default=None, ignorable=True
    )


@message(kind=Kind.RECORD, api_key=7, versions="0", flexible="0+")
class FenceBrokerRecord:
    """A broker was fenced; only written by versions before `BrokerRegistrationChangeRecord`."""

    id: int = int32()
    epoch: int = int64()


@message(kind=Kind.RECORD, api_key=8, versions="0", flexible="0+")
class UnfenceBrokerRecord:
    """A broker was unfenced; only written by versions before `BrokerRegistrationChangeRecord`."""

    id: int = int32()
    epoch: int = int64()


@message(kind=Kind.RECORD, api_key=9, versions="0", flexible="0+")
class RemoveTopicRecord:
    """A topic was deleted, with its partitions and configs."""

    topic_id: bytes = uuid()


@message(kind=Kind.RECORD, api_key=10, versions="0", flexible="0+")
class DelegationTokenRecord:
    """A delegation token was issued or renewed."""

    owner: str = string()
    requester: str = string()
    renewers: list[str] = array(of=string)
    issue_timestamp: int = int64()
    max_timestamp: int = int64(doc="It cannot be renewed past this time.")
    expiration_timestamp: int = int64(doc="It must be renewed before this time.")
    token_id: str = string()


@message(kind=Kind.RECORD, api_key=11, versions="0", flexible="0+")
class UserScramCredentialRecord:
    """A user's SCRAM credential was set."""

    name: str = string()
    mechanism: int = int8(doc="1 SCRAM-SHA-256, 2 SCRAM-SHA-512.")
    salt: bytes = bytes_()
    stored_key: bytes = bytes_()
    server_key: bytes = bytes_()
    iterations: int = int32()


@message(kind=Kind.RECORD, api_key=12, versions="0", flexible="0+")
class FeatureLevelRecord:
    """The finalized level of a feature; 0 removes it."""

    name: str = string()
    feature_level: int = int16()


@struct
class QuotaEntityPart:
    """One part of a quota's entity; a null name is the default of its type."""

    entity_type: str = string()
    entity_name: str | None = string(nullable="0+")


@message(kind=Kind.RECORD, api_key=14, versions="0", flexible="0+")
class ClientQuotaRecord:
    """One quota of an entity was set or removed."""

    entity: list[QuotaEntityPart] = array(of=QuotaEntityPart)
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


@message(kind=Kind.RECORD, api_key=15, versions="0", flexible="0+")
class ProducerIdsRecord:
    """A block of producer ids was allocated; the next block starts at ``next_producer_id``."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


@message(kind=Kind.RECORD, api_key=17, versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord:
    """A change of a broker's registration."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0, doc="-1 unfenced, 0 no change, 1 fenced.")
    in_controlled_shutdown: int = int8(versions="1+", tag=1, ignorable=True, doc="0 no change, 1 started.")
    log_dirs: list[bytes] = array(of=uuid, versions="2+", tag=2, ignorable=True, doc="Empty for no change.")
    cordoned_log_dirs: list[bytes] | None = array(
        of=uuid, versions="3+", nullable="3+", tag=3, default=None, ignorable=True, doc="Null for no change."
    )


@message(kind=Kind.RECORD, api_key=18, versions="0", flexible="0+")
class AccessControlEntryRecord:
    """An access control entry was created."""

    id: bytes = uuid()
    resource_type: int = int8()
    resource_name: str = string()
    pattern_type: int = int8()
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(kind=Kind.RECORD, api_key=19, versions="0", flexible="0+")
class RemoveAccessControlEntryRecord:
    """An access control entry was deleted."""

    id: bytes = uuid()


@message(kind=Kind.RECORD, api_key=20, versions="0", flexible="0+")
class NoOpRecord:
    """No operation: written periodically by the active controller."""


@message(kind=Kind.RECORD, api_key=21, versions="0", flexible="0+")
class ZkMigrationStateRecord:
    """The state of a ZooKeeper migration; kept for directories that went through one."""

    zk_migration_state: int = int8()


@message(kind=Kind.RECORD, api_key=22, versions="0", flexible="0+")
class RemoveUserScramCredentialRecord:
    """A user's SCRAM credential was deleted."""

    name: str = string()
    mechanism: int = int8()


@message(kind=Kind.RECORD, api_key=23, versions="0", flexible="0+")
class BeginTransactionRecord:
    """Begins a metadata transaction: the following records take effect when it ends, or never."""

    name: str | None = string(nullable="0+", tag=0, default=None)


@message(kind=Kind.RECORD, api_key=24, versions="0", flexible="0+")
class EndTransactionRecord:
    """Ends a metadata transaction: its records take effect."""


@message(kind=Kind.RECORD, api_key=25, versions="0", flexible="0+")
class AbortTransactionRecord:
    """Aborts a metadata transaction: its records are discarded."""

    reason: str | None = string(nullable="0+", tag=0, default=None)


@message(kind=Kind.RECORD, api_key=26, versions="0", flexible="0+")
class RemoveDelegationTokenRecord:
    """A delegation token is no longer valid."""

    token_id: str = string()


@message(kind=Kind.RECORD, api_key=27, versions="0", flexible="0+")
class RegisterControllerRecord:
    """A controller registered, or updated its endpoints."""

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean(doc="Always false; used in ZooKeeper migrations.")
    end_points: list[RecordedEndpoint] = array(of=RecordedEndpoint)
    features: list[RecordedFeature] = array(of=RecordedFeature)


@message(kind=Kind.RECORD, api_key=28, versions="0", flexible="0+")
class ClearElrRecord:
    """Clears the eligible leader replicas of one topic, or of all topics if the name is empty."""

    topic_name: str = string()


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | FenceBrokerRecord
    | UnfenceBrokerRecord
    | RemoveTopicRecord
    | DelegationTokenRecord
    | UserScramCredentialRecord
    | FeatureLevelRecord
    | ClientQuotaRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | AccessControlEntryRecord
    | RemoveAccessControlEntryRecord
    | NoOpRecord
    | ZkMigrationStateRecord
    | RemoveUserScramCredentialRecord
    | BeginTransactionRecord
    | EndTransactionRecord
    | AbortTransactionRecord
    | RemoveDelegationTokenRecord
    | RegisterControllerRecord
    | ClearElrRecord
)
"""Any record of the metadata log."""

RECORD_TYPES: dict[int, type[MetadataRecord]] = {schema_of(cls).api_key or 0: cls for cls in get_args(MetadataRecord)}
"""Record class by the type number in the frame."""
