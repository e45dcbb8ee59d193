"""The chores of the logs: retention, flushing, checkpoints, scrubbing, and the cleaner that compacts.

Defaults of topic options (``log.segment.bytes`` and the like) are not here: `log_defaults` derives them from the topic
options themselves.
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
        "log.retention.check.interval.ms", LONG, 300_000, valid=at_least(1), doc="How often retention is applied."
    )
    log_flush_scheduler_interval_ms = option(
        "log.flush.scheduler.interval.ms",
        LONG,
        LONG_MAX,
        importance=Importance.HIGH,
        doc="How often logs are looked at for flush.ms. Where log.flush.interval.ms is not set, it is also the "
        "flush.ms of topics that have none.",
    )
    log_flush_offset_checkpoint_interval_ms = option(
        "log.flush.offset.checkpoint.interval.ms",
        INT,
        60_000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="How often the recovery points are written down; they bound what a start after a crash reads again.",
    )
    log_flush_start_offset_checkpoint_interval_ms = option(
        "log.flush.start.offset.checkpoint.interval.ms",
        INT,
        60_000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="How often the log start offsets are written down. Accepted for compatibility: they are written with the "
        "recovery points.",
    )
    replica_high_watermark_checkpoint_interval_ms = option(
        "replica.high.watermark.checkpoint.interval.ms",
        LONG,
        5_000,
        importance=Importance.HIGH,
        doc="How often the high watermarks are written down.",
    )
    log_initial_task_delay_ms = option(
        "log.initial.task.delay.ms",
        LONG,
        30_000,
        valid=at_least(0),
        importance=Importance.LOW,
        internal=True,
        doc="How long the chores wait after the start. Accepted for compatibility: each waits for its own interval.",
    )
    log_scrub_interval_ms = option(
        "log.scrub.interval.ms",
        LONG,
        DAY_MS,
        valid=at_least(0),
        doc="How often everything on disk is read again in search of damage, a few megabytes a second; 0 is never. "
        "Kafka has no such thing.",
    )
    open_files_max = option(
        "log.open.files.max",
        INT,
        4096,
        valid=at_least(16),
        doc="How many log files are kept open; others are opened when they are needed. Kafka keeps all of them open.",
    )
    producer_id_expiration_ms = option(
        "producer.id.expiration.ms",
        INT,
        DAY_MS,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.LOW,
        doc="A producer id that wrote nothing to a partition for this long is forgotten there.",
    )
    producer_id_expiration_check_interval_ms = option(
        "producer.id.expiration.check.interval.ms",
        INT,
        600_000,
        valid=at_least(1),
        importance=Importance.LOW,
        internal=True,
        doc="How often producer ids to forget are looked for. Accepted for compatibility: it is done with retention.",
    )


class LogCleanerOptions(Section):
    """Compaction of logs whose cleanup.policy says so."""

    log_cleaner_enable = option(
        "log.cleaner.enable",
        BOOLEAN,
        True,
        doc="Whether logs with cleanup.policy=compact are compacted. Without it they grow, the offsets of groups "
        "included.",
    )
    log_cleaner_threads = option(
        "log.cleaner.threads",
        INT,
        1,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="How many logs are compacted at a time, each by a worker process of its own.",
    )
    log_cleaner_io_max_bytes_per_second = option(
        "log.cleaner.io.max.bytes.per.second",
        DOUBLE,
        sys.float_info.max,
        update=Update.CLUSTER_WIDE,
        doc="How much compaction may read and write in a second, all threads together. A change reaches a run under "
        "way.",
    )
    log_cleaner_dedupe_buffer_size = option(
        "log.cleaner.dedupe.buffer.size",
        LONG,
        128 * MIB,
        update=Update.CLUSTER_WIDE,
        doc="Memory for the keys of one pass, divided among the threads. A log with more keys than fit is compacted in "
        "several passes.",
    )
    log_cleaner_io_buffer_size = option(
        "log.cleaner.io.buffer.size",
        INT,
        524_288,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Memory for reading and writing, divided among the threads. A larger batch gets what it needs.",
    )
    log_cleaner_io_buffer_load_factor = option(
        "log.cleaner.io.buffer.load.factor",
        DOUBLE,
        0.9,
        update=Update.CLUSTER_WIDE,
        doc="How much of the memory for keys a pass may fill.",
    )
    log_cleaner_backoff_ms = option(
        "log.cleaner.backoff.ms",
        LONG,
        15_000,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="How long to rest when no log needs compaction.",
    )
