"""The values that admin calls take and return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition, Uuid

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
EARLIEST_PENDING_UPLOAD: Final = -6
"""Special timestamps of `Admin.list_offsets`; any other number is a timestamp in milliseconds."""


class ResourceType(IntEnum):
    """The types of resources that have settings."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class UpgradeType(IntEnum):
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    name: str
    partition_count: int = -1
    replication_factor: int = -1
    assignments: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Replicas by partition, preferred leader first; excludes partition count and replication factor."""
    configs: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    total_count: int
    assignments: Sequence[Sequence[int]] | None = None
    """Replicas of each added partition; None leaves placement to the controller."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigSynonym:
    name: str
    value: str | None
    source: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigEntry:
    name: str
    value: str | None
    source: int
    """A value of `kernel.options.ConfigSource`."""
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...] = ()
    type: int = 0
    documentation: str | None = None

    @property
    def is_default(self) -> bool:
        return self.source == 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    name: str
    topic_id: Uuid
    partition_count: int
    replication_factor: int
    configs: dict[str, ConfigEntry]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicListing:
    name: str
    topic_id: Uuid
    is_internal: bool
    partition_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    partition: int
    leader_id: int
    """The node id of the leader; -1 if there is none."""
    leader_epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible_leaders: tuple[int, ...] | None = None
    error: ApiError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    name: str
    topic_id: Uuid
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: int


@dataclass(frozen=True, slots=True)
class ConfigResource:
    type: ResourceType
    name: str
    """A topic name, group id or broker id; empty for the default of all brokers."""

    def __str__(self) -> str:
        return f"{self.type.name.lower()} {self.name or '<default>'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    name: str
    value: str | None = None
    operation: ConfigOperation = ConfigOperation.SET


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDescription:
    node_id: int
    host: str
    port: int
    rack: str | None = None
    is_fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    cluster_id: str | None
    controller_id: int
    nodes: tuple[NodeDescription, ...]
    authorized_operations: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogReplica:
    partition: TopicPartition
    size_bytes: int
    offset_lag: int
    is_future: bool
    dirty_ratio: float | None = None
    """The share of a compacted log that is not compacted yet; None if the broker does not report it."""
    offline_reason: str | None = None
    """Why the log is offline, with file and position of the damage; None if it is online or the broker does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    path: str
    error: ApiError | None
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    replicas: tuple[LogReplica, ...]
    offline_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    group_id: str
    protocol_type: str
    state: str
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    """The assigned partitions; empty if the group does not use the consumer protocol type."""
    metadata: bytes
    assignment_bytes: bytes
    epoch: int | None = None
    """The member epoch; None in classic groups."""
    target_assignment: tuple[TopicPartition, ...] | None = None
    """The target assignment; None in classic groups."""
    uses_classic_protocol: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    group_id: str
    state: str
    protocol_type: str
    protocol: str
    coordinator_id: int
    members: tuple[MemberDescription, ...]
    authorized_operations: int
    type: str = "classic"
    epoch: int | None = None
    target_epoch: int | None = None
    """The epoch that the target assignment was computed for; both are None for classic groups."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """A committed offset."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffset:
    offset: int
    """The offset; -1 if no record has a timestamp that late."""
    timestamp: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerDescription:
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    replica_id: int
    directory_id: Uuid
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
    endpoints: dict[int, tuple[tuple[str, str, int], ...]]
    """Listener name, host and port of each node that has reported them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureDescription:
    supported: dict[str, tuple[int, int]]
    finalized: dict[str, tuple[int, int]]
    finalized_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureUpdate:
    level: int
    upgrade_type: UpgradeType = UpgradeType.UPGRADE


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A reassignment in progress: ``replicas`` are all current ones, old and new."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
