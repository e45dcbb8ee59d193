"""Options of record delivery in share groups and of the share coordinator."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, INT, SHORT, STRING, Importance, Section, Update, at_least, between, option
from millbeck.kernel.units import MIB


class ShareDeliveryOptions(Section):
    delivery_count_limit = option(
        "group.share.delivery.count.limit",
        INT,
        5,
        valid=between(2, 10),
        doc="The maximum number of delivery attempts of a record; after that it is archived.",
    )
    delivery_count_limit_min = option(
        "group.share.min.delivery.count.limit",
        INT,
        2,
        valid=between(2, 5),
        doc="The minimum of group.share.delivery.count.limit for a group.",
    )
    delivery_count_limit_max = option(
        "group.share.max.delivery.count.limit",
        INT,
        10,
        valid=between(5, 25),
        doc="The maximum of group.share.delivery.count.limit for a group.",
    )
    record_lock_duration_ms = option(
        "group.share.record.lock.duration.ms",
        INT,
        30_000,
        valid=between(1000, 3_600_000),
        doc="The acquisition lock duration: how long a consumer holds a delivered record before it becomes available "
        "again.",
    )
    record_lock_duration_ms_min = option(
        "group.share.min.record.lock.duration.ms",
        INT,
        15_000,
        valid=between(1000, 30_000),
        doc="The minimum of the acquisition lock duration for a group.",
    )
    record_lock_duration_ms_max = option(
        "group.share.max.record.lock.duration.ms",
        INT,
        60_000,
        valid=between(30_000, 3_600_000),
        doc="The maximum of the acquisition lock duration for a group.",
    )
    partition_record_locks_max = option(
        "group.share.partition.max.record.locks",
        INT,
        2000,
        valid=between(100, 10_000),
        doc="The maximum number of acquired, not yet acknowledged records per share partition.",
    )
    partition_record_locks_max_min = option(
        "group.share.min.partition.max.record.locks",
        INT,
        100,
        valid=between(100, 2000),
        doc="The minimum of group.share.partition.max.record.locks for a group.",
    )
    partition_record_locks_max_max = option(
        "group.share.max.partition.max.record.locks",
        INT,
        4000,
        valid=between(2000, 10_000),
        doc="The maximum of group.share.partition.max.record.locks for a group.",
    )
    session_count_max = option(
        "group.share.max.share.sessions",
        INT,
        2000,
        valid=at_least(1),
        doc="The maximum number of share sessions.",
    )
    persister_class_name = option(
        "group.share.persister.class.name",
        STRING,
        "org.apache.kafka.server.share.persister.DefaultStatePersister",
        internal=True,
        doc="The class of the share state persister. Accepted for compatibility: the persister is built in.",
    )


class DeadLetterOptions(Section):
    """Options of dead-letter topics of share groups (KIP-1191), which require share.version 2."""

    auto_create_topics = option(
        "errors.deadletterqueue.auto.create.topics.enable",
        BOOLEAN,
        False,
        update=Update.CLUSTER_WIDE,
        doc="Whether a share group's dead-letter topic is created automatically with the first dead-letter record.",
    )
    topic_name_prefix = option(
        "errors.deadletterqueue.topic.name.prefix",
        STRING,
        "dlq.",
        update=Update.CLUSTER_WIDE,
        doc="The required prefix of dead-letter topic names; empty allows any name.",
    )


class ShareCoordinatorOptions(Section):
    """Options of the share coordinator and its topic ``__share_group_state``."""

    partition_count = option(
        "share.coordinator.state.topic.num.partitions",
        INT,
        50,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The number of partitions of the share group state topic.",
    )
    replication_factor = option(
        "share.coordinator.state.topic.replication.factor",
        SHORT,
        3,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The replication factor of the share group state topic.",
    )
    min_insync_replicas = option(
        "share.coordinator.state.topic.min.isr",
        SHORT,
        2,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The min.insync.replicas of the share group state topic.",
    )
    segment_bytes = option(
        "share.coordinator.state.topic.segment.bytes",
        INT,
        100 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The segment size of the share group state topic.",
    )
    compression_codec = option(
        "share.coordinator.state.topic.compression.codec",
        INT,
        0,
        importance=Importance.HIGH,
        doc="The compression of records in the share group state topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
    )
    prune_interval_ms = option(
        "share.coordinator.state.topic.prune.interval.ms",
        INT,
        300_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The interval between deletions of obsolete records from the share group state topic.",
    )
    load_buffer_bytes = option(
        "share.coordinator.load.buffer.size",
        INT,
        5 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The read buffer size for loading the share group state topic.",
    )
    write_timeout_ms = option(
        "share.coordinator.write.timeout.ms",
        INT,
        5000,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The timeout of a write to the share group state topic, replication included.",
    )
    snapshot_update_records = option(
        "share.coordinator.snapshot.update.records.per.snapshot",
        INT,
        500,
        valid=between(0, 500),
        doc="The number of update records between two snapshots of a share partition.",
    )
    cold_partition_snapshot_interval_ms = option(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        INT,
        300_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The interval at which unchanged share partitions get a new snapshot.",
    )
    threads = option(
        "share.coordinator.threads",
        INT,
        1,
        valid=at_least(1),
        doc="The number of share coordinator threads. Accepted for compatibility: coordinators run on the node's "
        "event loop.",
    )
    append_linger_ms = option(
        "share.coordinator.append.linger.ms",
        INT,
        -1,
        valid=at_least(-1),
        doc="How long writes are collected into one batch. Accepted for compatibility: writes of one event loop "
        "iteration are batched.",
    )
    cached_buffer_bytes_max = option(
        "share.coordinator.cached.buffer.max.bytes",
        INT,
        1 * MIB + 12,
        valid=at_least(512 * 1024),
        update=Update.CLUSTER_WIDE,
        doc="The size of a write buffer kept between appends. Accepted for compatibility: none is kept.",
    )
