"""Replicas and their leaders. A node that is alone has nobody to replicate from or to."""

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
        doc="Connections that fetch from each other broker.",
    )
    replica_lag_time_max_ms = option(
        "replica.lag.time.max.ms",
        LONG,
        30_000,
        importance=Importance.HIGH,
        doc="How long a follower may lag before it is no longer in sync.",
    )
    replica_fetch_wait_max_ms = option(
        "replica.fetch.wait.max.ms",
        INT,
        500,
        importance=Importance.HIGH,
        doc="How long a follower's fetch waits for data.",
    )
    replica_fetch_min_bytes = option(
        "replica.fetch.min.bytes",
        INT,
        1,
        importance=Importance.HIGH,
        doc="How much data a follower's fetch waits for.",
    )
    replica_fetch_max_bytes = option(
        "replica.fetch.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(0),
        doc="How much a follower asks for of one partition.",
    )
    replica_fetch_response_max_bytes = option(
        "replica.fetch.response.max.bytes",
        INT,
        10 * MIB,
        valid=at_least(0),
        doc="How much a follower asks for at once.",
    )
    replica_fetch_backoff_ms = option(
        "replica.fetch.backoff.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="How long a follower rests after a failed fetch.",
    )
    replica_socket_timeout_ms = option(
        "replica.socket.timeout.ms",
        INT,
        30_000,
        importance=Importance.HIGH,
        doc="How long a request between replicas may take.",
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
        doc="How long a broker waits for another broker's answer.",
    )
    replica_selector_class = option(
        "replica.selector.class",
        STRING,
        None,
        doc="Which replica a consumer is told to read from. Idle on one node, where there is one replica to choose.",
    )
    auto_leader_rebalance_enable = option(
        "auto.leader.rebalance.enable",
        BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether leadership returns to preferred replicas by itself.",
    )
    leader_imbalance_check_interval_seconds = option(
        "leader.imbalance.check.interval.seconds",
        LONG,
        300,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="How often leaders that are not the preferred ones are looked for.",
    )
    unclean_leader_election_interval_ms = option(
        "unclean.leader.election.interval.ms",
        LONG,
        300_000,
        valid=at_least(1),
        internal=True,
        doc="How often partitions in need of an unclean election are looked for.",
    )


class ReplicationThrottleOptions(Section):
    """Rates that are set while brokers run, with the topics' lists of throttled replicas."""

    leader_replication_throttled_rate = option(
        "leader.replication.throttled.rate",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Bytes a second that leaders send to throttled replicas that are not in sync. Idle on one node.",
    )
    follower_replication_throttled_rate = option(
        "follower.replication.throttled.rate",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Bytes a second that throttled replicas fetch while they are not in sync. Idle on one node.",
    )
    replica_alter_log_dirs_io_max_bytes_per_second = option(
        "replica.alter.log.dirs.io.max.bytes.per.second",
        LONG,
        LONG_MAX,
        valid=at_least(0),
        update=Update.CLUSTER_WIDE,
        doc="Bytes a second for moving replicas between the directories of a broker.",
    )
