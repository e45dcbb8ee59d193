"""Thread pools, request queues and purgatories: what tunes Kafka's threads, and what it means on one event loop.

A node serves everything from one loop; waiting for the disk happens on a few threads of its own. The numbers here are
checked and listed, so that a file written for Kafka works, and change nothing.
"""

from __future__ import annotations

from millbeck.kernel.options import INT, Importance, Section, Update, at_least, option


class EventLoopOptions(Section):
    num_network_threads = option(
        "num.network.threads",
        INT,
        3,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Threads that read and write sockets. Accepted for compatibility: one event loop does. More cores are "
        "used by more nodes.",
    )
    num_io_threads = option(
        "num.io.threads",
        INT,
        8,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Threads that handle requests. Accepted for compatibility: requests are handled on the event loop, and "
        "only waits for the disk leave it.",
    )
    background_threads = option(
        "background.threads",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Threads for chores. Accepted for compatibility: retention, flushing and checkpoints are decided on the "
        "event loop and carried out one log at a time.",
    )
    num_recovery_threads_per_data_dir = option(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Threads that open and recover the logs of one directory. Accepted for compatibility: logs are opened one "
        "after the other.",
    )
    num_replica_alter_log_dirs_threads = option(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        importance=Importance.HIGH,
        doc="Threads that move replicas between directories. Accepted for compatibility.",
    )
    queued_max_requests = option(
        "queued.max.requests",
        INT,
        500,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Requests that may wait for a thread. Accepted for compatibility: none waits for one. A connection with "
        "64 unanswered requests is not read until one is answered.",
    )
    fetch_purgatory_purge_interval_requests = option(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        doc="When waiting fetches are swept. Accepted for compatibility: one that ended leaves nothing to sweep.",
    )
    producer_purgatory_purge_interval_requests = option(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        doc="When waiting produces are swept. Accepted for compatibility: one that ended leaves nothing to sweep.",
    )
    delete_records_purgatory_purge_interval_requests = option(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        doc="When waiting record deletions are swept. Accepted for compatibility: one that ended leaves nothing.",
    )
    share_fetch_purgatory_purge_interval_requests = option(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        doc="When waiting fetches of share groups are swept. Accepted for compatibility.",
    )
