"""Tiered storage. It is not in this release: the switch is refused, the rest is checked and listed."""

from __future__ import annotations

from millbeck.kernel.options import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    STRING,
    Importance,
    Section,
    Update,
    at_least,
    between,
    non_empty,
    option,
)
from millbeck.kernel.units import GIB, LONG_MAX


class RemoteStorageOptions(Section):
    system_enable = option(
        "remote.log.storage.system.enable",
        BOOLEAN,
        False,
        doc="Whether there is a remote tier. Not available in this release: it must be false.",
    )
    storage_manager_class_name = option(
        "remote.log.storage.manager.class.name",
        STRING,
        None,
        valid=non_empty(),
        doc="What stores segments remotely. Takes effect with tiered storage, in a later release.",
    )
    storage_manager_class_path = option(
        "remote.log.storage.manager.class.path",
        STRING,
        None,
        doc="Where Java finds it. Accepted for compatibility.",
    )
    storage_manager_prefix = option(
        "remote.log.storage.manager.impl.prefix",
        STRING,
        "rsm.config.",
        valid=non_empty(),
        doc="The prefix of its own settings. Takes effect with tiered storage.",
    )
    metadata_manager_class_name = option(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        valid=non_empty(),
        doc="What remembers which segments are stored where. Takes effect with tiered storage.",
    )
    metadata_manager_class_path = option(
        "remote.log.metadata.manager.class.path",
        STRING,
        None,
        doc="Where Java finds it. Accepted for compatibility.",
    )
    metadata_manager_prefix = option(
        "remote.log.metadata.manager.impl.prefix",
        STRING,
        "rlmm.config.",
        valid=non_empty(),
        doc="The prefix of its own settings. Takes effect with tiered storage.",
    )
    metadata_manager_listener_name = option(
        "remote.log.metadata.manager.listener.name",
        STRING,
        None,
        valid=non_empty(),
        doc="The listener over which it reaches the brokers. Takes effect with tiered storage.",
    )
    custom_metadata_bytes_max = option(
        "remote.log.metadata.custom.metadata.max.bytes",
        INT,
        128,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="How much it may remember of its own for each segment. Takes effect with tiered storage.",
    )
    follower_fetch_last_tiered_offset_enable = option(
        "follower.fetch.last.tiered.offset.enable",
        BOOLEAN,
        False,
        update=Update.CLUSTER_WIDE,
        doc="Whether an empty follower begins where the remote tier ends. Takes effect with tiered storage.",
    )


class RemoteReadOptions(Section):
    """Reading from the remote tier."""

    fetch_wait_ms_max = option(
        "remote.fetch.max.wait.ms",
        INT,
        500,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How long a fetch waits for the remote tier. Takes effect with tiered storage.",
    )
    list_offsets_timeout_ms = option(
        "remote.list.offsets.request.timeout.ms",
        LONG,
        30_000,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How long ListOffsets waits for the remote tier. Takes effect with tiered storage.",
    )
    reader_threads = option(
        "remote.log.reader.threads",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How many remote reads run at a time. Takes effect with tiered storage.",
    )
    reader_pending_max = option(
        "remote.log.reader.max.pending.tasks",
        INT,
        100,
        valid=at_least(1),
        doc="How many remote reads may wait. Takes effect with tiered storage.",
    )
    index_cache_bytes_max = option(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1 * GIB,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="How much disk the indexes of remote segments may take. Takes effect with tiered storage.",
    )
    index_cache_lifetime_ms = option(
        "remote.log.index.file.cache.ttl.ms",
        LONG,
        900_000,
        valid=at_least(-1),
        importance=Importance.LOW,
        internal=True,
        doc="How long an unused one of them is kept. Takes effect with tiered storage.",
    )
    fetch_bytes_per_second_max = option(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        LONG_MAX,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How much is read from the remote tier in a second. Takes effect with tiered storage.",
    )
    fetch_quota_window_count = option(
        "remote.log.manager.fetch.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        doc="How many windows that rate looks back on. Takes effect with tiered storage.",
    )
    fetch_quota_window_seconds = option(
        "remote.log.manager.fetch.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        doc="How long such a window is. Takes effect with tiered storage.",
    )


class RemoteCopyOptions(Section):
    """Copying to the remote tier, and deleting from it."""

    manager_threads = option(
        "remote.log.manager.thread.pool.size",
        INT,
        2,
        valid=at_least(1),
        doc="How many of its chores run at a time. Takes effect with tiered storage.",
    )
    copier_threads = option(
        "remote.log.manager.copier.thread.pool.size",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How many segments are copied at a time. Takes effect with tiered storage.",
    )
    expiration_threads = option(
        "remote.log.manager.expiration.thread.pool.size",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How many expired segments are deleted at a time. Takes effect with tiered storage.",
    )
    follower_threads = option(
        "remote.log.manager.follower.thread.pool.size",
        INT,
        2,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How many followers' chores run at a time. Takes effect with tiered storage.",
    )
    task_interval_ms = option(
        "remote.log.manager.task.interval.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How often segments to copy and to delete are looked for. Takes effect with tiered storage.",
    )
    task_retry_backoff_ms = option(
        "remote.log.manager.task.retry.backoff.ms",
        LONG,
        500,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The first rest after a failure. Takes effect with tiered storage.",
    )
    task_retry_backoff_ms_max = option(
        "remote.log.manager.task.retry.backoff.max.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The longest rest after failures. Takes effect with tiered storage.",
    )
    task_retry_jitter = option(
        "remote.log.manager.task.retry.jitter",
        DOUBLE,
        0.2,
        valid=between(0, 0.5),
        importance=Importance.LOW,
        internal=True,
        doc="How much chance is added to those. Takes effect with tiered storage.",
    )
    copy_bytes_per_second_max = option(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        LONG_MAX,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="How much is copied to the remote tier in a second. Takes effect with tiered storage.",
    )
    copy_quota_window_count = option(
        "remote.log.manager.copy.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        doc="How many windows that rate looks back on. Takes effect with tiered storage.",
    )
    copy_quota_window_seconds = option(
        "remote.log.manager.copy.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        doc="How long such a window is. Takes effect with tiered storage.",
    )
