"""Options of replication. A single node does not replicate."""

from __future__ import annotations

from millbeck.kernel.options import BOOLEAN, INT, LONG, STRING, Importance, Section, Update, at_least, option
from millbeck.kernel.units import LONG_MAX, MIB


class ReplicationOptions(Section):
    num_replica_fetchers = option(
        "num.replica.fetchers",
        INT,
        1,
        valid=at_least(1),
        update=Update.CLUSTER_WIDE,
        importance=Importance.HIGH,
        doc="The number of fetcher connections per source broker.",
    )
    replica_lag_time_max_ms = option(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        importance=Importance.HIGH,
        doc="The maximum lag of a follower: one that has not caught up with the leader for this long is removed from "
        "the ISR.",
    )
    replica_fetch_wait_max_ms = option(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        importance=Importance.HIGH,
        doc="The maximum wait of a follower's fetch for data.",
    )
    replica_fetch_min_bytes = option(
        "replica.fetch.min.bytes",
        INT,
        1,
        importance=Importance.HIGH,
        doc="The minimum bytes of a follower's fetch response; with less data the leader waits.",
    )
    replica_fetch_max_bytes = option(
        "replica.fetch.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(0),
        doc="The maximum bytes per partition of a follower's fetch.",
    )
    replica_fetch_response_max_bytes = option(
        "replica.fetch.response.max.bytes",
        INT,
        10 * MIB,
        valid=at_least(0),
        doc="The maximum bytes of a follower's fetch response.",
    )
    replica_fetch_backoff_ms = option(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="The backoff of a follower after a failed fetch.",
    )
    replica_socket_timeout_ms = option(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        importance=Importance.HIGH,
        doc="The timeout of requests between replicas.",
    )
    replica_socket_receive_buffer_bytes = option(
        "replica.socket.receive.buffer.bytes",
        INT,
        65_536,
        importance=Importance.HIGH,
        doc="SO_RCVBUF of followers' connections.",
    )
    request_timeout_ms = option(
        "request.timeout.ms",
        INT,
        30_000,
        importance=Importance.HIGH,
        doc="The timeout of requests to other brokers.",
    )
    replica_selector_class = option(
        "replica.selector.class",
        STRING,
        None,
        doc="What selects the replica that a consumer reads from: LeaderSelector or RackAwareReplicaSelector, or the "
        "name of an entry point in the group millbeck.replica_selector. No effect on a single node.",
    )
    auto_leader_rebalance_enable = option(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether leadership returns to preferred replicas automatically.",
    )
    leader_imbalance_check_interval_seconds = option(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="The interval between checks for partitions not led by their preferred replica.",
    )
    unclean_leader_election_interval_ms = option(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        valid=at_least(1),
        internal=True,
        doc="The interval between checks for partitions that need an unclean leader election.",
    )


class ReplicationThrottleOptions(Section):
    """Replication throttles: dynamic broker configs, used with the throttled replica lists of topics."""

    leader_replication_throttled_rate = option(
        "leader.replication.throttled.rate",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The maximum bytes per second that leaders send to throttled replicas outside the ISR. No effect on a "
        "single node.",
    )
    follower_replication_throttled_rate = option(
        "follower.replication.throttled.rate",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The maximum bytes per second that throttled replicas outside the ISR fetch. No effect on a single node.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second = option(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="The maximum bytes per second of replica moves between log directories of a broker.",
    )
