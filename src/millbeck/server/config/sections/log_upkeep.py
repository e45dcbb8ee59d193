"""Options of log maintenance: retention, flushing, checkpoints, scrubbing, and the log cleaner.

Defaults of topic options (``log.segment.bytes`` and the like) are not declared here: `log_defaults` derives them from
the topic options.
"""

from __future__ import annotations

import sys

from millbeck.kernel.options import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    Importance,
    Section,
    Update,
    at_least,
    option,
)
from millbeck.kernel.units import DAY_MS, LONG_MAX, MIB


class LogUpkeepOptions(Section):
    log_retention_check_interval_ms = option(
        "log.retention.check.interval.ms",
        LONG,
        300_000,
        valid=at_least(1),
        doc="The interval between retention checks.",
    )
    log_flush_scheduler_interval_ms = option(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        importance=Importance.HIGH,
        doc="The interval between checks whether a log must be flushed because of flush.ms. If log.flush.interval.ms "
        "is not set, this is also the default of flush.ms.",
    )
    log_flush_offset_checkpoint_interval_ms = option(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The interval between checkpoints of the recovery points, which bound how much log a start after a crash "
        "reads.",
    )
    log_flush_start_offset_checkpoint_interval_ms = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The interval between checkpoints of the log start offsets. Accepted for compatibility: they are written "
        "with the recovery points.",
    )
    replica_high_watermark_checkpoint_interval_ms = option(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5_000,
        importance=Importance.HIGH,
        doc="The interval between checkpoints of the high watermarks.",
    )
    log_initial_task_delay_ms = option(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        valid=at_least(0),
        importance=Importance.LOW,
        internal=True,
        doc="The delay of background tasks after the start. Accepted for compatibility: each waits for its own "
        "interval.",
    )
    log_scrub_interval_ms = option(
        "log.scrub.interval.ms",
        LONG,
        DAY_MS,
        valid=at_least(0),
        doc="The interval between scrubs, which read all logs at a few megabytes per second to detect corruption; the "
        "first is at most an hour after the start. 0 disables them. Not in Kafka.",
    )
    open_files_max = option(
        "log.open.files.max",
        INT,
        4096,
        valid=at_least(16),
        doc="The maximum number of open log files; others are opened on demand. Not in Kafka, which keeps all files "
        "open.",
    )
    producer_id_expiration_ms = option(
        "producer.id.expiration.ms",
        INT,
        DAY_MS,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="The state of a producer id that wrote nothing to a partition for this long is removed from that "
        "partition.",
    )
    producer_id_expiration_check_interval_ms = option(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="The interval between checks for expired producer ids. Accepted for compatibility: they are removed with "
        "retention checks.",
    )


class LogCleanerOptions(Section):
    """Options of the log cleaner, which compacts logs with cleanup.policy=compact."""

    log_cleaner_enable = option(
        "log.cleaner.enable",
        BOOLEAN,
        True,
        doc="Whether the log cleaner runs. Without it logs with cleanup.policy=compact grow without bound, "
        "__consumer_offsets included.",
    )
    log_cleaner_threads = option(
        "log.cleaner.threads",
        INT,
        1,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The number of logs that are compacted at the same time, each in a separate worker process.",
    )
    log_cleaner_io_max_bytes_per_second = option(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        sys.float_info.max,
        update=Update.CLUSTER_WIDE,
        doc="The maximum bytes per second that all cleaner threads together read and write. A change also applies to "
        "a running compaction.",
    )
    log_cleaner_dedupe_buffer_size = option(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        128 * MIB,
        update=Update.CLUSTER_WIDE,
        doc="Memory for the deduplication buffers of all cleaner threads. A log with more keys than fit is compacted "
        "in several passes.",
    )
    log_cleaner_io_buffer_size = option(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Memory for the I/O buffers of all cleaner threads. A batch larger than its buffer gets a larger one.",
    )
    log_cleaner_io_buffer_load_factor = option(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        update=Update.CLUSTER_WIDE,
        doc="The maximum load factor of the deduplication buffer.",
    )
    log_cleaner_backoff_ms = option(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="How long the cleaner sleeps when no log needs compaction.",
    )
