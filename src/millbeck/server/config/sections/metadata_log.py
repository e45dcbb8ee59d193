"""The metadata log, the quorum that keeps it, and how brokers and their controller keep in touch."""

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
# Compiled when first needed: starting takes long enough.
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
        doc="The directory of the metadata log; the first of the log directories when not set.",
    )
    metadata_version_max = option(
        "internal.metadata.version.max",
        STRING,
        None,
        internal=True,
        doc="The newest metadata.version that this node admits to knowing, such as 4.2-IV1: for trying a rolling "
        "upgrade with nodes of one release. Not set, it is the newest there is.",
    )
    snapshot_after_bytes = option(
        "metadata.log.max.record.bytes.between.snapshots",
        LONG,
        20 * MIB,
        valid=at_least(1),
        importance=Importance.HIGH,
        doc="A snapshot of the metadata is written after this many bytes of new records.",
    )
    snapshot_after_ms = option(
        "metadata.log.max.snapshot.interval.ms",
        LONG,
        1 * HOUR_MS,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="And after this long when there are any; 0 waits for the bytes alone.",
    )
    segment_bytes = option(
        "metadata.log.segment.bytes",
        INT,
        1 * GIB,
        valid=at_least(8 * MIB),
        importance=Importance.HIGH,
        doc="Segment size of the metadata log.",
    )
    segment_ms = option(
        "metadata.log.segment.ms",
        LONG,
        7 * DAY_MS,
        importance=Importance.HIGH,
        doc="How long a segment of the metadata log is written to. Accepted for compatibility: segments are begun by "
        "size and with every snapshot.",
    )
    retention_bytes = option(
        "metadata.max.retention.bytes",
        LONG,
        100 * MIB,
        importance=Importance.HIGH,
        doc="How large the metadata log and its snapshots may become together before the oldest snapshot goes, with "
        "the segments below the next one; negative is without a bound. The newest snapshot always stays.",
    )
    retention_ms = option(
        "metadata.max.retention.ms",
        LONG,
        7 * DAY_MS,
        importance=Importance.HIGH,
        doc="How old the last record in a snapshot may be before the snapshot goes, with the segments below the next "
        "one; negative is without a bound. The newest snapshot always stays.",
    )
    idle_interval_ms = option(
        "metadata.max.idle.interval.ms",
        INT,
        500,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="How often an idle controller writes a record so that followers see the log move. Accepted for "
        "compatibility: followers learn of an idle leader from its answers.",
    )
    delete_delay_ms = option(
        "internal.metadata.delete.delay.millis",
        LONG,
        60_000,
        importance=Importance.LOW,
        internal=True,
        doc="How long removed files of the metadata log stay. Accepted for compatibility.",
    )
    internal_segment_bytes = option(
        "internal.metadata.log.segment.bytes",
        INT,
        None,
        importance=Importance.LOW,
        internal=True,
        doc="Takes the place of metadata.log.segment.bytes in Kafka's own tests. Accepted for compatibility.",
    )
    batch_bytes_max = option(
        "internal.metadata.max.batch.size.in.bytes",
        INT,
        8 * MIB,
        importance=Importance.LOW,
        internal=True,
        doc="The largest batch of metadata records. Accepted for compatibility.",
    )


class QuorumOptions(Section):
    """Who votes. A node that is alone is its own quorum, and nothing here makes it wait."""

    voters = option(
        "controller.quorum.voters",
        LIST,
        (),
        valid=_VOTERS,
        importance=Importance.HIGH,
        doc="The voters as id@host:port, the same on every node; hosts and ports are those of controller listeners. "
        "Empty: the directory says who votes, or else a node with both roles is its own quorum.",
    )
    bootstrap_servers = option(
        "controller.quorum.bootstrap.servers",
        LIST,
        (),
        valid=_ADDRESSES,
        importance=Importance.HIGH,
        doc="Where controllers can be found by nodes that are not told of all voters.",
    )
    auto_join_enable = option(
        "controller.quorum.auto.join.enable",
        BOOLEAN,
        False,
        importance=Importance.LOW,
        doc="Whether a new controller becomes a voter by itself, where the voters are kept in the metadata log.",
    )
    election_timeout_ms = option(
        "controller.quorum.election.timeout.ms",
        INT,
        1000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="How long to wait for votes before a new election. A node that is alone elects itself at once.",
    )
    election_backoff_ms_max = option(
        "controller.quorum.election.backoff.max.ms",
        INT,
        1000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="The longest rest between two elections.",
    )
    fetch_timeout_ms = option(
        "controller.quorum.fetch.timeout.ms",
        INT,
        2000,
        valid=at_least(0),
        importance=Importance.HIGH,
        doc="How long without a leader before an election is begun. A leader that most voters have not fetched from "
        "for half as long again gives up.",
    )
    append_linger_ms = option(
        "controller.quorum.append.linger.ms",
        INT,
        25,
        valid=at_least(0),
        doc="How long records wait to be written together. Accepted for compatibility: what arrives while a write is "
        "being synced is written together next.",
    )
    request_timeout_ms = option(
        "controller.quorum.request.timeout.ms",
        INT,
        2000,
        valid=at_least(0),
        doc="How long to wait for another member's answer, and for a connection to a controller.",
    )
    retry_backoff_ms = option(
        "controller.quorum.retry.backoff.ms",
        INT,
        20,
        valid=at_least(0),
        importance=Importance.LOW,
        doc="How long to rest before asking another member again.",
    )
    fetch_bytes_max = option(
        "controller.quorum.fetch.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How much of the metadata log one fetch asks for.",
    )
    fetch_snapshot_bytes_max = option(
        "controller.quorum.fetch.snapshot.max.bytes",
        INT,
        1 * MIB,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="How much of a snapshot one fetch asks for.",
    )


class MembershipOptions(Section):
    """How brokers and their controller keep in touch."""

    broker_heartbeat_interval_ms = option(
        "broker.heartbeat.interval.ms",
        INT,
        2000,
        doc="How often a broker tells its controller that it lives.",
    )
    broker_session_timeout_ms = option(
        "broker.session.timeout.ms",
        INT,
        9000,
        doc="How long a broker that is not heard of counts as alive; then others take over what it leads.",
    )
    initial_broker_registration_timeout_ms = option(
        "initial.broker.registration.timeout.ms",
        INT,
        60_000,
        doc="How long a starting broker tries to register before it gives up and ends.",
    )
    controller_socket_timeout_ms = option(
        "controller.socket.timeout.ms",
        INT,
        30_000,
        doc="How long a request to the controller may take. Accepted for compatibility: a request is tried again with "
        "every new controller until whoever asked has no more time.",
    )
    controller_performance_sample_period_ms = option(
        "controller.performance.sample.period.ms",
        LONG,
        60_000,
        valid=at_least(100),
        internal=True,
        doc="How often the controller logs its timings. Accepted for compatibility: they are in the metrics.",
    )
    controller_performance_always_log_threshold_ms = option(
        "controller.performance.always.log.threshold.ms",
        LONG,
        2000,
        valid=at_least(0),
        internal=True,
        doc="From when a slow controller event is logged. Accepted for compatibility.",
    )
