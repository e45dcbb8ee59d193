"""The broker's settings for the group protocols in which the broker assigns, with Kafka's names and defaults.

They are accepted, checked and listed from the start; each takes effect with the protocol it belongs to.
"""

from __future__ import annotations

from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    STRING,
    Importance,
    Section,
    all_of,
    at_least,
    between,
    distinct,
    non_empty,
    one_of,
    option,
)
from millbeck.kernel.units import INT_MAX


class ConsumerProtocolOptions(Section):
    """The consumer protocol, in which the broker assigns (KIP-848)."""

    session_timeout_ms = option(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="Without a heartbeat for this long a member of a consumer group is removed.",
    )
    session_timeout_ms_min = option(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="The shortest session timeout a consumer group may be given.",
    )
    session_timeout_ms_max = option(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        doc="The longest session timeout a consumer group may be given.",
    )
    heartbeat_interval_ms = option(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="How often members of a consumer group are told to send a heartbeat.",
    )
    heartbeat_interval_ms_min = option(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="The shortest heartbeat interval a consumer group may be given.",
    )
    heartbeat_interval_ms_max = option(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        valid=at_least(1),
        doc="The longest heartbeat interval a consumer group may be given.",
    )
    size_max = option(
        "group.consumer.max.size", INT, INT_MAX, valid=at_least(1), doc="The most members one consumer group may have."
    )
    assignors = option(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        valid=all_of(distinct(), non_empty()),
        doc="The assignors consumer groups may use; the first is the default.",
    )
    migration_policy = option(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        valid=one_of("bidirectional", "upgrade", "downgrade", "disabled"),
        doc="Which way a group with members may move between the classic and the consumer protocol.",
    )
    assignment_interval_ms = option(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="The least time between two computed assignments of a consumer group.",
    )
    assignment_interval_ms_min = option(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        valid=at_least(0),
        doc="The shortest assignment interval a consumer group may be given.",
    )
    assignment_interval_ms_max = option(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        valid=at_least(0),
        doc="The longest assignment interval a consumer group may be given.",
    )
    assignor_offload_enabled = option(
        "group.consumer.assignor.offload.enable",
        BOOLEAN,
        True,
        doc="Whether assignments of consumer groups are computed away from the event loop.",
    )
    regex_refresh_interval_ms = option(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        valid=at_least(10_000),
        internal=True,
        doc="How often the topics behind a subscribed regular expression are looked up again.",
    )


class ShareProtocolOptions(Section):
    """Membership of share groups (KIP-932)."""

    session_timeout_ms = option(
        "group.share.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="Without a heartbeat for this long a member of a share group is removed.",
    )
    session_timeout_ms_min = option(
        "group.share.min.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="The shortest session timeout a share group may be given.",
    )
    session_timeout_ms_max = option(
        "group.share.max.session.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        doc="The longest session timeout a share group may be given.",
    )
    heartbeat_interval_ms = option(
        "group.share.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="How often members of a share group are told to send a heartbeat.",
    )
    heartbeat_interval_ms_min = option(
        "group.share.min.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="The shortest heartbeat interval a share group may be given.",
    )
    heartbeat_interval_ms_max = option(
        "group.share.max.heartbeat.interval.ms",
        INT,
        15_000,
        valid=at_least(1),
        doc="The longest heartbeat interval a share group may be given.",
    )
    size_max = option(
        "group.share.max.size", INT, 200, valid=between(1, 1000), doc="The most members one share group may have."
    )
    assignors = option(
        "group.share.assignors",
        LIST,
        ("simple",),
        valid=all_of(distinct(), non_empty()),
        doc="The assignor share groups use.",
    )
    assignment_interval_ms = option(
        "group.share.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="The least time between two computed assignments of a share group.",
    )
    assignment_interval_ms_min = option(
        "group.share.min.assignment.interval.ms",
        INT,
        0,
        valid=at_least(0),
        doc="The shortest assignment interval a share group may be given.",
    )
    assignment_interval_ms_max = option(
        "group.share.max.assignment.interval.ms",
        INT,
        15_000,
        valid=at_least(0),
        doc="The longest assignment interval a share group may be given.",
    )
    assignor_offload_enabled = option(
        "group.share.assignor.offload.enable",
        BOOLEAN,
        True,
        doc="Whether assignments of share groups are computed away from the event loop.",
    )
    initialize_retry_interval_ms = option(
        "group.share.initialize.retry.interval.ms",
        INT,
        30_000,
        valid=at_least(1),
        internal=True,
        importance=Importance.LOW,
        doc="How long a failed initialisation of a share partition waits before it is tried again.",
    )


class StreamsProtocolOptions(Section):
    """Membership of streams groups (KIP-1071)."""

    session_timeout_ms = option(
        "group.streams.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="Without a heartbeat for this long a member of a streams group is removed.",
    )
    session_timeout_ms_min = option(
        "group.streams.min.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="The shortest session timeout a streams group may be given.",
    )
    session_timeout_ms_max = option(
        "group.streams.max.session.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        doc="The longest session timeout a streams group may be given.",
    )
    heartbeat_interval_ms = option(
        "group.streams.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="How often members of a streams group are told to send a heartbeat.",
    )
    heartbeat_interval_ms_min = option(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="The shortest heartbeat interval a streams group may be given.",
    )
    heartbeat_interval_ms_max = option(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15_000,
        valid=at_least(1),
        doc="The longest heartbeat interval a streams group may be given.",
    )
    size_max = option(
        "group.streams.max.size",
        INT,
        INT_MAX,
        valid=at_least(1),
        doc="The most members one streams group may have.",
    )
    standby_replica_count = option(
        "group.streams.num.standby.replicas",
        INT,
        0,
        valid=at_least(0),
        doc="Standby copies of each task of a streams group.",
    )
    standby_replica_count_max = option(
        "group.streams.max.standby.replicas",
        INT,
        2,
        valid=at_least(0),
        doc="The most standby copies a streams group may be given.",
    )
    initial_rebalance_delay_ms = option(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3000,
        valid=at_least(0),
        doc="How long the first rebalance of a streams group waits for more members.",
    )
    assignment_interval_ms = option(
        "group.streams.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="The least time between two computed assignments of a streams group.",
    )
    assignment_interval_ms_min = option(
        "group.streams.min.assignment.interval.ms",
        INT,
        0,
        valid=at_least(0),
        doc="The shortest assignment interval a streams group may be given.",
    )
    assignment_interval_ms_max = option(
        "group.streams.max.assignment.interval.ms",
        INT,
        15_000,
        valid=at_least(0),
        doc="The longest assignment interval a streams group may be given.",
    )
    assignor_offload_enabled = option(
        "group.streams.assignor.offload.enable",
        BOOLEAN,
        True,
        doc="Whether assignments of streams groups are computed away from the event loop.",
    )
