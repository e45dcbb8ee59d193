"""Options for Kafka's thread pools, request queues and purgatories, which have no effect on an event loop.

A node serves all requests on one event loop; a few threads wait for the disk. These options are validated and listed,
so that a file written for Kafka works, and have no other effect.
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
        doc="Number of threads that read and write sockets. Accepted for compatibility: one event loop does both. To "
        "use more cores, run more nodes.",
    )
    num_io_threads = option(
        "num.io.threads",
        INT,
        8,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Number of threads that handle requests. Accepted for compatibility: requests are handled on the event "
        "loop, and only disk waits run on threads.",
    )
    background_threads = option(
        "background.threads",
        INT,
        10,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Number of threads for background tasks. Accepted for compatibility: retention, flushing and checkpoints "
        "are scheduled on the event loop and run one log at a time.",
    )
    num_recovery_threads_per_data_dir = option(
        "num.recovery.threads.per.data.dir",
        INT,
        2,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="Number of threads per log directory that load and recover logs. Accepted for compatibility: logs are "
        "loaded one after the other.",
    )
    num_replica_alter_log_dirs_threads = option(
        "num.replica.alter.log.dirs.threads",
        INT,
        None,
        importance=Importance.HIGH,
        doc="Number of threads that move replicas between log directories. Accepted for compatibility.",
    )
    queued_max_requests = option(
        "queued.max.requests",
        INT,
        500,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="Number of requests that may queue for a request handler thread. Accepted for compatibility: there is no "
        "such queue. A connection with 64 unanswered requests is not read until one is answered.",
    )
    fetch_purgatory_purge_interval_requests = option(
        "fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        doc="Purge interval of the fetch purgatory, in requests. Accepted for compatibility: completed fetches need "
        "no purge.",
    )
    producer_purgatory_purge_interval_requests = option(
        "producer.purgatory.purge.interval.requests",
        INT,
        1000,
        doc="Purge interval of the produce purgatory, in requests. Accepted for compatibility: completed requests "
        "need no purge.",
    )
    delete_records_purgatory_purge_interval_requests = option(
        "delete.records.purgatory.purge.interval.requests",
        INT,
        1,
        doc="Purge interval of the DeleteRecords purgatory, in requests. Accepted for compatibility: no purge is "
        "needed.",
    )
    share_fetch_purgatory_purge_interval_requests = option(
        "share.fetch.purgatory.purge.interval.requests",
        INT,
        1000,
        doc="Purge interval of the share fetch purgatory, in requests. Accepted for compatibility: no purge is needed.",
    )
