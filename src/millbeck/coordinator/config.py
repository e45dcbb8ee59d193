"""Broker options of the group coordinator and of committed offsets, with Kafka's names and defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millbeck.coordinator.group.assignors import ASSIGNORS, Assignor
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions, ShareProtocolOptions, StreamsProtocolOptions
from millbeck.kernel.options import (
    INT,
    LIST,
    LONG,
    SHORT,
    Importance,
    Section,
    all_of,
    at_least,
    each_of,
    non_empty,
    one_of,
    option,
)
from millbeck.kernel.units import INT_MAX, MIB, MINUTE_MS

GROUP_TYPES = ("classic", "consumer", "share", "streams")


class OffsetsTopicOptions(Section):
    """Options for creating, writing and loading ``__consumer_offsets``."""

    partition_count = option(
        "offsets.topic.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Number of partitions of the offsets topic. Changing it later moves groups to other coordinators.",
    )
    replication_factor = option(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Replication factor of the offsets topic. The topic is not created until there are enough brokers.",
    )
    segment_bytes = option(
        "offsets.topic.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Segment size of the offsets topic in bytes. Smaller segments are compacted sooner and load faster.",
    )
    compression_codec = option(
        "offsets.topic.compression.codec",
        INT,
        0,
        valid=one_of(0, 1, 2, 3, 4),
        importance=Importance.HIGH,
        doc="Compression of the offsets topic, by codec id: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    load_buffer_bytes = option(
        "offsets.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Bytes read at once while loading the offsets topic; a batch larger than this is still read whole.",
    )
    commit_timeout_ms = option(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long an offset commit waits for its replication before it fails with a retriable error.",
    )

    def topic_options(self) -> dict[str, str]:
        """Topic configuration to create the offsets topic with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.segment_bytes),
        }


class OffsetOptions(Section):
    """Limits on committed offsets and their retention."""

    metadata_bytes_max = option(
        "offset.metadata.max.bytes",
        INT,
        4096,
        importance=Importance.HIGH,
        doc="Maximum size of the metadata string a client may store with a committed offset.",
    )
    retention_minutes = option(
        "offsets.retention.minutes",
        INT,
        7 * 24 * 60,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long offsets are kept after a group becomes empty or stops subscribing to a topic; "
        "for consumers that assign partitions manually, since the last commit. Deleting the group or the topic "
        "removes them at once.",
    )
    retention_check_interval_ms = option(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Interval between checks for expired offsets.",
    )

    @property
    def retention_ms(self) -> int:
        return self.retention_minutes * MINUTE_MS


class ClassicGroupOptions(Section):
    """Limits and delays of groups that use the classic protocol (JoinGroup and SyncGroup)."""

    session_timeout_ms_min = option(
        "group.min.session.timeout.ms",
        INT,
        6000,
        doc="Minimum session timeout a member may request. Shorter ones detect failed members sooner but need "
        "more frequent heartbeats.",
    )
    session_timeout_ms_max = option(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        doc="Maximum session timeout a member may request. Longer timeouts allow more time between heartbeats but "
        "detect failed members later.",
    )
    initial_rebalance_delay_ms = option(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        doc="How long the first rebalance of an empty group waits for more members to join.",
    )
    size_max = option("group.max.size", INT, INT_MAX, valid=at_least(1), doc="Maximum members of a group.")


class GroupCoordinatorOptions(Section):
    """Options of the group coordinator. Shards run on the node's single event loop, so thread counts have no effect."""

    rebalance_protocols = option(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        valid=all_of(each_of(*GROUP_TYPES), non_empty()),
        doc="Enabled group protocols. Deprecated in Kafka.",
    )
    threads = option(
        "group.coordinator.threads",
        INT,
        4,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Accepted for compatibility: groups are served by the node's event loop.",
    )
    background_threads = option(
        "group.coordinator.background.threads",
        INT,
        2,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Accepted for compatibility: groups are served by the node's event loop.",
    )
    append_linger_ms = option(
        "group.coordinator.append.linger.ms",
        INT,
        -1,
        valid=at_least(-1),
        doc="Accepted for compatibility: writes of one event loop iteration are always batched.",
    )
    cached_buffer_bytes_max = option(
        "group.coordinator.cached.buffer.max.bytes",
        INT,
        MIB + 12,
        valid=at_least(MIB // 2),
        doc="Accepted for compatibility: no write buffer is kept between appends.",
    )


BROKER_SECTIONS = (
    OffsetsTopicOptions,
    OffsetOptions,
    ClassicGroupOptions,
    GroupCoordinatorOptions,
    ConsumerProtocolOptions,
    ShareProtocolOptions,
    StreamsProtocolOptions,
)
"""All option sections declared by this package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupShardOptions:
    """The sections that a shard of the group coordinator reads."""

    classic: ClassicGroupOptions
    offsets: OffsetOptions
    consumer: ConsumerProtocolOptions
    streams: StreamsProtocolOptions = field(default_factory=StreamsProtocolOptions.of)
    assignors: Mapping[str, Assignor] = field(default_factory=lambda: ASSIGNORS)
    """The assignors of consumer groups by name, those of the deployment included."""
