"""Deliveries of share groups and the coordinator of their state."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, INT, SHORT, STRING, Importance, Section, Update, at_least, between, option
from millbeck.kernel.units import MIB


class ShareDeliveryOptions(Section):
    delivery_count_limit = option(
        "group.share.delivery.count.limit",
        INT,
        5,
        valid=between(2, 10),
        doc="How often a record is delivered before it is given up.",
    )
    delivery_count_limit_min = option(
        "group.share.min.delivery.count.limit",
        INT,
        2,
        valid=between(2, 5),
        doc="The least such limit a group may be given.",
    )
    delivery_count_limit_max = option(
        "group.share.max.delivery.count.limit",
        INT,
        10,
        valid=between(5, 25),
        doc="The largest such limit a group may be given.",
    )
    record_lock_duration_ms = option(
        "group.share.record.lock.duration.ms",
        INT,
        30_000,
        valid=between(1000, 3_600_000),
        doc="How long a delivered record is a consumer's before it is delivered again.",
    )
    record_lock_duration_ms_min = option(
        "group.share.min.record.lock.duration.ms",
        INT,
        15_000,
        valid=between(1000, 30_000),
        doc="The shortest such time a group may be given.",
    )
    record_lock_duration_ms_max = option(
        "group.share.max.record.lock.duration.ms",
        INT,
        60_000,
        valid=between(30_000, 3_600_000),
        doc="The longest such time a group may be given.",
    )
    partition_record_locks_max = option(
        "group.share.partition.max.record.locks",
        INT,
        2000,
        valid=between(100, 10_000),
        doc="How many records of one partition may be delivered and unsettled.",
    )
    partition_record_locks_max_min = option(
        "group.share.min.partition.max.record.locks",
        INT,
        100,
        valid=between(100, 2000),
        doc="The least such number a group may be given.",
    )
    partition_record_locks_max_max = option(
        "group.share.max.partition.max.record.locks",
        INT,
        4000,
        valid=between(2000, 10_000),
        doc="The largest such number a group may be given.",
    )
    session_count_max = option(
        "group.share.max.share.sessions",
        INT,
        2000,
        valid=at_least(1),
        doc="How many share sessions are kept at a time.",
    )
    persister_class_name = option(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
        doc="A class that keeps the state of share groups. Accepted for compatibility: it is built in.",
    )


class DeadLetterOptions(Section):
    """Where share groups may have their dead letters (KIP-1191); in use from share.version 2 on."""

    auto_create_topics = option(
        "errors.deadletterqueue.auto.create.topics.enable",
        BOOLEAN,
        False,
        update=Update.CLUSTER_WIDE,
        doc="Whether a dead-letter topic that a share group names is made when the first dead letter comes.",
    )
    topic_name_prefix = option(
        "errors.deadletterqueue.topic.name.prefix",
        STRING,
        "dlq.",
        update=Update.CLUSTER_WIDE,
        doc="What the names of dead-letter topics must begin with; empty for any name.",
    )


class ShareCoordinatorOptions(Section):
    """The coordinator of ``__share_group_state``, and how that topic is made."""

    partition_count = option(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Partitions of the topic that holds the state of share groups.",
    )
    replication_factor = option(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Copies of each of its partitions.",
    )
    min_insync_replicas = option(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        2,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How many of those must be in sync for a write.",
    )
    segment_bytes = option(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Its segment size.",
    )
    compression_codec = option(
        "share.coordinator.state.topic.compression.codec",
        INT,
        0,
        importance=Importance.HIGH,
        doc="The codec of what is written to it: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    prune_interval_ms = option(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="How often old state is deleted from it.",
    )
    load_buffer_bytes = option(
        "share.coordinator.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How much of it is read at once while it is loaded.",
    )
    write_timeout_ms = option(
        "share.coordinator.write.timeout.ms",
        INT,
        5000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How long a write waits for its replicas.",
    )
    snapshot_update_records = option(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        valid=between(0, 500),
        doc="How many updates are written between two snapshots of a share partition.",
    )
    cold_partition_snapshot_interval_ms = option(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="How often unchanged share partitions are written anew.",
    )
    threads = option(
        "share.coordinator.threads",
        INT,
        1,
        valid=at_least(1),
        doc="Accepted for compatibility: coordinators are served by the node's event loop.",
    )
    append_linger_ms = option(
        "share.coordinator.append.linger.ms",
        INT,
        -1,
        valid=at_least(-1),
        doc="Accepted for compatibility: the writes of one turn of the event loop are always gathered.",
    )
    cached_buffer_bytes_max = option(
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1 * MIB + 12,
        valid=at_least(512 * 1024),
        update=Update.CLUSTER_WIDE,
        doc="Accepted for compatibility: no write buffer is kept between appends.",
    )
