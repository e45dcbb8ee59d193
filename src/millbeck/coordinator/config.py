"""The broker's settings for groups and committed offsets, with Kafka's names and defaults."""

from __future__ import annotations

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
    """How ``__consumer_offsets`` is made, written and loaded."""

    partition_count = option(
        "offsets.topic.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Partitions of the topic that holds groups and offsets. Changing it later moves every group.",
    )
    replication_factor = option(
        "offsets.topic.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Copies of each partition of the offsets topic. The topic is not created before there are enough brokers.",
    )
    segment_bytes = option(
        "offsets.topic.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Segment size of the offsets topic. Small segments are compacted sooner and load faster.",
    )
    compression_codec = option(
        "offsets.topic.compression.codec",
        INT,
        0,
        valid=one_of(0, 1, 2, 3, 4),
        importance=Importance.HIGH,
        doc="Codec of the batches the coordinator writes: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    load_buffer_bytes = option(
        "offsets.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How much of the offsets topic is read at once while it is loaded; a larger batch is still read whole.",
    )
    commit_timeout_ms = option(
        "offsets.commit.timeout.ms",
        INT,
        5000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long an offset commit waits for the replicas of the offsets topic before the client is told to retry.",
    )

    def topic_options(self) -> dict[str, str]:
        """The topic's own options, for its creation."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(self.segment_bytes),
        }


class OffsetOptions(Section):
    """What may be committed, and how long it is kept."""

    metadata_bytes_max = option(
        "offset.metadata.max.bytes",
        INT,
        4096,
        importance=Importance.HIGH,
        doc="The longest note a client may store with a committed offset.",
    )
    retention_minutes = option(
        "offsets.retention.minutes",
        INT,
        7 * 24 * 60,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long offsets are kept once a group has lost all its members, or has stopped subscribing to a topic; "
        "for consumers that manage their own assignment, since the last commit. Deleting the group or the topic "
        "removes them at once.",
    )
    retention_check_interval_ms = option(
        "offsets.retention.check.interval.ms",
        LONG,
        600_000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How often offsets that have outlived their retention are looked for.",
    )

    @property
    def retention_ms(self) -> int:
        return self.retention_minutes * MINUTE_MS


class ClassicGroupOptions(Section):
    """Limits and delays of groups whose members join and sync."""

    session_timeout_ms_min = option(
        "group.min.session.timeout.ms",
        INT,
        6000,
        doc="The shortest session timeout a member may ask for. Shorter ones notice a dead member sooner and cost "
        "more heartbeats.",
    )
    session_timeout_ms_max = option(
        "group.max.session.timeout.ms",
        INT,
        1_800_000,
        doc="The longest session timeout a member may ask for. Longer ones leave more time between heartbeats and "
        "notice a dead member later.",
    )
    initial_rebalance_delay_ms = option(
        "group.initial.rebalance.delay.ms",
        INT,
        3000,
        doc="How long the first rebalance of an empty group waits for more members to arrive.",
    )
    size_max = option("group.max.size", INT, INT_MAX, valid=at_least(1), doc="The most members one group may have.")


class GroupCoordinatorOptions(Section):
    """The coordinator itself. Its shards run on the node's one event loop, so thread counts change nothing."""

    rebalance_protocols = option(
        "group.coordinator.rebalance.protocols",
        LIST,
        ("classic", "consumer", "streams"),
        valid=all_of(each_of(*GROUP_TYPES), non_empty()),
        doc="The group protocols that are on. Deprecated in Kafka.",
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
        doc="Accepted for compatibility: the writes of one turn of the event loop are always gathered.",
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
"""Every section of broker options that this package declares."""
