"""Options of tiered storage. Not available in this release: enabling it is refused, the other options are validated and
listed."""

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
        doc="Whether tiered storage is enabled. Not available in this release: it must be false.",
    )
    storage_manager_class_name = option(
        "remote.log.storage.manager.class.name",
        STRING,
        None,
        valid=non_empty(),
        doc="The class of the remote storage manager. Takes effect with tiered storage, in a later release.",
    )
    storage_manager_class_path = option(
        "remote.log.storage.manager.class.path",
        STRING,
        None,
        doc="The Java class path of that class. Accepted for compatibility.",
    )
    storage_manager_prefix = option(
        "remote.log.storage.manager.impl.prefix",
        STRING,
        "rsm.config.",
        valid=non_empty(),
        doc="The prefix of settings passed to that class. Takes effect with tiered storage.",
    )
    metadata_manager_class_name = option(
        "remote.log.metadata.manager.class.name",
        STRING,
        "org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager",
        valid=non_empty(),
        doc="The class of the remote log metadata manager. Takes effect with tiered storage.",
    )
    metadata_manager_class_path = option(
        "remote.log.metadata.manager.class.path",
        STRING,
        None,
        doc="The Java class path of that class. Accepted for compatibility.",
    )
    metadata_manager_prefix = option(
        "remote.log.metadata.manager.impl.prefix",
        STRING,
        "rlmm.config.",
        valid=non_empty(),
        doc="The prefix of settings passed to that class. Takes effect with tiered storage.",
    )
    metadata_manager_listener_name = option(
        "remote.log.metadata.manager.listener.name",
        STRING,
        None,
        valid=non_empty(),
        doc="The listener by which the remote log metadata manager connects to brokers. Takes effect with tiered "
        "storage.",
    )
    custom_metadata_bytes_max = option(
        "remote.log.metadata.custom.metadata.max.bytes",
        INT,
        128,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="The maximum bytes of custom metadata per segment. Takes effect with tiered storage.",
    )
    follower_fetch_last_tiered_offset_enable = option(
        "follower.fetch.last.tiered.offset.enable",
        BOOLEAN,
        False,
        update=Update.CLUSTER_WIDE,
        doc="Whether a new follower starts at the last tiered offset. Takes effect with tiered storage.",
    )


class RemoteReadOptions(Section):
    """Options of reads from the remote tier."""

    fetch_wait_ms_max = option(
        "remote.fetch.max.wait.ms",
        INT,
        500,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The maximum wait of a fetch for the remote tier. Takes effect with tiered storage.",
    )
    list_offsets_timeout_ms = option(
        "remote.list.offsets.request.timeout.ms",
        LONG,
        30_000,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The maximum wait of ListOffsets for the remote tier. Takes effect with tiered storage.",
    )
    reader_threads = option(
        "remote.log.reader.threads",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The number of concurrent remote reads. Takes effect with tiered storage.",
    )
    reader_pending_max = option(
        "remote.log.reader.max.pending.tasks",
        INT,
        100,
        valid=at_least(1),
        doc="The maximum number of queued remote reads. Takes effect with tiered storage.",
    )
    index_cache_bytes_max = option(
        "remote.log.index.file.cache.total.size.bytes",
        LONG,
        1 * GIB,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="The maximum bytes on disk of the index cache for remote segments. Takes effect with tiered storage.",
    )
    index_cache_lifetime_ms = option(
        "remote.log.index.file.cache.ttl.ms",
        LONG,
        900_000,
        valid=at_least(-1),
        importance=Importance.LOW,
        internal=True,
        doc="How long an unused entry of the index cache is kept. Takes effect with tiered storage.",
    )
    fetch_bytes_per_second_max = option(
        "remote.log.manager.fetch.max.bytes.per.second",
        LONG,
        LONG_MAX,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The maximum bytes per second read from the remote tier. Takes effect with tiered storage.",
    )
    fetch_quota_window_count = option(
        "remote.log.manager.fetch.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        doc="The number of samples of the quota on reads from the remote tier. Takes effect with tiered storage.",
    )
    fetch_quota_window_seconds = option(
        "remote.log.manager.fetch.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        doc="The length in seconds of each sample of the quota on reads from the remote tier. Takes effect with "
        "tiered storage.",
    )


class RemoteCopyOptions(Section):
    """Options of copies to the remote tier, and of deletions from it."""

    manager_threads = option(
        "remote.log.manager.thread.pool.size",
        INT,
        2,
        valid=at_least(1),
        doc="The number of concurrent tasks of tiered storage. Takes effect with tiered storage.",
    )
    copier_threads = option(
        "remote.log.manager.copier.thread.pool.size",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The number of segments copied concurrently. Takes effect with tiered storage.",
    )
    expiration_threads = option(
        "remote.log.manager.expiration.thread.pool.size",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The number of expired segments deleted concurrently. Takes effect with tiered storage.",
    )
    follower_threads = option(
        "remote.log.manager.follower.thread.pool.size",
        INT,
        2,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The number of concurrent tiered storage tasks of followers. Takes effect with tiered storage.",
    )
    task_interval_ms = option(
        "remote.log.manager.task.interval.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The interval between checks for segments to copy or delete. Takes effect with tiered storage.",
    )
    task_retry_backoff_ms = option(
        "remote.log.manager.task.retry.backoff.ms",
        LONG,
        500,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The initial backoff after a failure. Takes effect with tiered storage.",
    )
    task_retry_backoff_ms_max = option(
        "remote.log.manager.task.retry.backoff.max.ms",
        LONG,
        30_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The maximum backoff after failures. Takes effect with tiered storage.",
    )
    task_retry_jitter = option(
        "remote.log.manager.task.retry.jitter",
        DOUBLE,
        0.2,
        valid=between(0, 0.5),
        importance=Importance.LOW,
        internal=True,
        doc="The random jitter of these backoffs, as a fraction. Takes effect with tiered storage.",
    )
    copy_bytes_per_second_max = option(
        "remote.log.manager.copy.max.bytes.per.second",
        LONG,
        LONG_MAX,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        doc="The maximum bytes per second copied to the remote tier. Takes effect with tiered storage.",
    )
    copy_quota_window_count = option(
        "remote.log.manager.copy.quota.window.num",
        INT,
        11,
        valid=at_least(1),
        doc="The number of samples of the quota on copies to the remote tier. Takes effect with tiered storage.",
    )
    copy_quota_window_seconds = option(
        "remote.log.manager.copy.quota.window.size.seconds",
        INT,
        1,
        valid=at_least(1),
        doc="The length in seconds of each sample of the quota on copies to the remote tier. Takes effect with "
        "tiered storage.",
    )
