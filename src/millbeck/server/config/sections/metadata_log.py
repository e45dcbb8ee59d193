"""Options of the metadata log, of its quorum, and of the broker lifecycle with the controller."""

from __future__ import annotations

import re
from typing import Final

from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Importance,
    Section,
    Validator,
    at_least,
    option,
)
from millbeck.kernel.units import DAY_MS, GIB, HOUR_MS, MIB

_ADDRESS: Final = r"\[?[^@\s]+\]?:[0-9]{1,5}"
# Compiled on first use: this keeps startup fast.
_ADDRESSES: Final[Validator[tuple[str, ...]]] = Validator(
    lambda entries: all(re.fullmatch(_ADDRESS, entry) for entry in entries), "a list of host:port"
)
_VOTERS: Final[Validator[tuple[str, ...]]] = Validator(
    lambda entries: all(re.fullmatch(rf"[0-9]+@{_ADDRESS}", entry) for entry in entries), "a list of id@host:port"
)


class MetadataLogOptions(Section):
    metadata_log_dir = option(
        "metadata.log.dir",
        STRING,
        None,
        importance=Importance.HIGH,
        doc="The directory of the metadata log. Not set: the first log directory.",
    )
    metadata_version_max = option(
        "internal.metadata.version.max",
        STRING,
        None,
        internal=True,
        doc="The newest metadata.version that this node reports as supported, such as 4.2-IV1. Used to test a "
        "rolling upgrade with nodes of a single release. Not set: the newest version.",
    )
    snapshot_after_bytes = option(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="A metadata snapshot is written after this many bytes of new records.",
    )
    snapshot_after_ms = option(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        1 * HOUR_MS,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="A metadata snapshot is also written this long after the last one if there are new records; 0 disables "
        "that.",
    )
    segment_bytes = option(
        "metadata.log.segment.bytes",
        INT,
        1 * GIB,
        valid=at_least(8 * MIB),
        importance=Importance.HIGH,
        doc="The segment size of the metadata log.",
    )
    segment_ms = option(
        "metadata.log.segment.ms",
        LONG,
        7 * DAY_MS,
        importance=Importance.HIGH,
        doc="The maximum time before a segment of the metadata log is rolled. Accepted for compatibility: segments "
        "are rolled by size and with every snapshot.",
    )
    retention_bytes = option(
        "metadata.max.retention.bytes",
        LONG,
        100 * MIB,
        importance=Importance.HIGH,
        doc="The maximum size of the metadata log with its snapshots; above it the oldest snapshot is deleted, with "
        "the segments before the next one. Negative: no limit. The newest snapshot is always kept.",
    )
    retention_ms = option(
        "metadata.max.retention.ms",
        LONG,
        7 * DAY_MS,
        importance=Importance.HIGH,
        doc="The maximum age of the last record in a snapshot; older snapshots are deleted, with the segments before "
        "the next one. Negative: no limit. The newest snapshot is always kept.",
    )
    idle_interval_ms = option(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="The interval between no-op records of an idle controller. Accepted for compatibility: none are written; "
        "followers detect a live leader by its fetch responses.",
    )
    delete_delay_ms = option(
        "internal.metadata.delete.delay.millis",
        LONG,
        60_000,
        importance=Importance.LOW,
        internal=True,
        doc="The delay before deleted files of the metadata log are removed. Accepted for compatibility.",
    )
    internal_segment_bytes = option(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        importance=Importance.LOW,
        internal=True,
        doc="Overrides metadata.log.segment.bytes in Kafka's own tests. Accepted for compatibility.",
    )
    batch_bytes_max = option(
        "internal.metadata.max.batch.size.in.bytes",
        INT,
        8 * MIB,
        importance=Importance.LOW,
        internal=True,
        doc="The maximum size of a batch of metadata records. Accepted for compatibility.",
    )


class QuorumOptions(Section):
    """Options of the KRaft quorum. A single node is its own quorum and never waits for these timeouts."""

    voters = option(
        "controller.quorum.voters",
        LIST,
        (),
        valid=_VOTERS,
        importance=Importance.HIGH,
        doc="The static voters as id@host:port of their controller listeners, the same on every node. Empty: the "
        "voters are those in the metadata log; without any, a node with both roles is its own quorum.",
    )
    bootstrap_servers = option(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        valid=_ADDRESSES,
        importance=Importance.HIGH,
        doc="Addresses of controllers, from which nodes without static voters discover the quorum.",
    )
    auto_join_enable = option(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a new controller adds itself to the voters. Only with voters in the metadata log.",
    )
    election_timeout_ms = option(
        "controller.quorum.election.timeout.ms",
        INT,
        1000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="How long a candidate waits for votes before it starts a new election. A single node elects itself at "
        "once.",
    )
    election_backoff_ms_max = option(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The maximum backoff between two elections.",
    )
    fetch_timeout_ms = option(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="How long a voter waits without contact to a leader before it starts an election. A leader resigns when "
        "it got no fetch from a majority of the voters for one and a half times as long.",
    )
    append_linger_ms = option(
        "controller.quorum.append.linger.ms",
        INT,
        25,
        valid=at_least(0),
        doc="How long records wait to be written in one batch. Accepted for compatibility: records that arrive during "
        "an fsync form the next batch.",
    )
    request_timeout_ms = option(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        valid=at_least(0),
        doc="The timeout of requests between members of the quorum, and of connecting to a controller.",
    )
    retry_backoff_ms = option(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="The backoff before a request to another member of the quorum is retried.",
    )
    fetch_bytes_max = option(
        "controller.quorum.fetch.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The maximum bytes of the metadata log per fetch request.",
    )
    fetch_snapshot_bytes_max = option(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="The maximum bytes of a snapshot per FetchSnapshot request.",
    )


class MembershipOptions(Section):
    """Options of broker registration and heartbeats."""

    broker_heartbeat_interval_ms = option(
        "broker.heartbeat.interval.ms",
        INT,
        2000,
        doc="The interval between heartbeats of a broker to the controller.",
    )
    broker_session_timeout_ms = option(
        "broker.session.timeout.ms",
        INT,
        9000,
        doc="The session timeout of brokers: one that sends no heartbeat for this long is fenced, and other brokers "
        "become leaders of its partitions.",
    )
    initial_broker_registration_timeout_ms = option(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        doc="How long a starting broker tries to register before it exits.",
    )
    controller_socket_timeout_ms = option(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        doc="The timeout of requests to the controller. Accepted for compatibility: a request is retried with each "
        "new controller until the caller's own timeout.",
    )
    controller_performance_sample_period_ms = option(
        "controller.performance.sample.period.ms",
        LONG,
        60_000,
        valid=at_least(100),
        internal=True,
        doc="The interval at which the controller logs performance statistics. Accepted for compatibility: see the "
        "metrics.",
    )
    controller_performance_always_log_threshold_ms = option(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        valid=at_least(0),
        internal=True,
        doc="The duration from which a slow controller event is logged. Accepted for compatibility.",
    )
