"""Broker options of the group protocols with server-side assignment, with Kafka's names and defaults.

They are all accepted, validated and listed; each takes effect with the protocol it belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.kernel.java_names import full_name
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    STRING,
    Importance,
    Section,
    Validator,
    at_least,
    between,
    one_of,
    option,
)
from millbeck.kernel.units import INT_MAX

_PACKAGE = "org.apache.kafka.coordinator.group.assignor"
CONSUMER_ASSIGNORS = {"uniform": f"{_PACKAGE}.UniformAssignor", "range": f"{_PACKAGE}.RangeAssignor"}
SHARE_ASSIGNORS = {"simple": f"{_PACKAGE}.SimpleAssignor"}
"""Assignors by name, with the Java class names that are accepted instead."""


def _named(entries: tuple[str, ...], known: Mapping[str, str]) -> tuple[str, ...]:
    """Replace class names by assignor names."""
    by_class = {class_name: name for name, class_name in known.items()}
    return tuple(by_class.get(full_name(entry, by_class), entry) for entry in entries)


def _some_of(known: Mapping[str, str]) -> Validator[tuple[str, ...]]:
    def accepts(entries: tuple[str, ...]) -> bool:
        names = _named(entries, known)
        return len(names) > 0 and len(set(names)) == len(names) and all(names)

    names = ", ".join(known)
    return Validator(accepts, f"at least one of {names}, their Kafka class names, or entry points, without duplicates")


class ConsumerProtocolOptions(Section):
    """Options of the consumer protocol (KIP-848), in which the broker assigns partitions."""

    session_timeout_ms = option(
        "group.consumer.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="A consumer group member without a heartbeat for this long is removed from the group.",
    )
    session_timeout_ms_min = option(
        "group.consumer.min.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="Minimum session timeout that can be configured for a consumer group.",
    )
    session_timeout_ms_max = option(
        "group.consumer.max.session.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        doc="Maximum session timeout that can be configured for a consumer group.",
    )
    heartbeat_interval_ms = option(
        "group.consumer.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="Heartbeat interval given to the members of a consumer group.",
    )
    heartbeat_interval_ms_min = option(
        "group.consumer.min.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="Minimum heartbeat interval that can be configured for a consumer group.",
    )
    heartbeat_interval_ms_max = option(
        "group.consumer.max.heartbeat.interval.ms",
        INT,
        15_000,
        valid=at_least(1),
        doc="Maximum heartbeat interval that can be configured for a consumer group.",
    )
    size_max = option(
        "group.consumer.max.size", INT, INT_MAX, valid=at_least(1), doc="Maximum members of a consumer group."
    )
    assignors = option(
        "group.consumer.assignors",
        LIST,
        ("uniform", "range"),
        valid=_some_of(CONSUMER_ASSIGNORS),
        doc="Assignors that consumer groups may use; the first one is the default. Besides uniform and range, entry "
        "points in the group millbeck.consumer_assignor.",
    )
    migration_policy = option(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        valid=one_of("bidirectional", "upgrade", "downgrade", "disabled"),
        doc="Which conversions between the classic and the consumer protocol are allowed for groups with members.",
    )
    assignment_interval_ms = option(
        "group.consumer.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="Minimum interval between two assignments of a consumer group.",
    )
    assignment_interval_ms_min = option(
        "group.consumer.min.assignment.interval.ms",
        INT,
        0,
        valid=at_least(0),
        doc="Minimum assignment interval that can be configured for a consumer group.",
    )
    assignment_interval_ms_max = option(
        "group.consumer.max.assignment.interval.ms",
        INT,
        15_000,
        valid=at_least(0),
        doc="Maximum assignment interval that can be configured for a consumer group.",
    )
    assignor_offload_enabled = option(
        "group.consumer.assignor.offload.enable",
        BOOLEAN,
        True,
        doc="Whether assignments of consumer groups are computed off the event loop.",
    )
    regex_refresh_interval_ms = option(
        "group.consumer.regex.refresh.interval.ms",
        INT,
        600_000,
        valid=at_least(10_000),
        internal=True,
        doc="Interval at which subscribed regular expressions are matched against the topics again.",
    )

    @property
    def assignor_names(self) -> tuple[str, ...]:
        """Enabled assignors by name; the first one is the default."""
        return _named(self.assignors, CONSUMER_ASSIGNORS)


class ShareProtocolOptions(Section):
    """Options of share groups (KIP-932)."""

    session_timeout_ms = option(
        "group.share.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="A share group member without a heartbeat for this long is removed from the group.",
    )
    session_timeout_ms_min = option(
        "group.share.min.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="Minimum session timeout that can be configured for a share group.",
    )
    session_timeout_ms_max = option(
        "group.share.max.session.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        doc="Maximum session timeout that can be configured for a share group.",
    )
    heartbeat_interval_ms = option(
        "group.share.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="Heartbeat interval given to the members of a share group.",
    )
    heartbeat_interval_ms_min = option(
        "group.share.min.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="Minimum heartbeat interval that can be configured for a share group.",
    )
    heartbeat_interval_ms_max = option(
        "group.share.max.heartbeat.interval.ms",
        INT,
        15_000,
        valid=at_least(1),
        doc="Maximum heartbeat interval that can be configured for a share group.",
    )
    size_max = option("group.share.max.size", INT, 200, valid=between(1, 1000), doc="Maximum members of a share group.")
    assignors = option(
        "group.share.assignors",
        LIST,
        ("simple",),
        valid=_some_of(SHARE_ASSIGNORS),
        doc="Assignor used by share groups: simple, or an entry point in the group millbeck.share_assignor.",
    )
    assignment_interval_ms = option(
        "group.share.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="Minimum interval between two assignments of a share group.",
    )
    assignment_interval_ms_min = option(
        "group.share.min.assignment.interval.ms",
        INT,
        0,
        valid=at_least(0),
        doc="Minimum assignment interval that can be configured for a share group.",
    )
    assignment_interval_ms_max = option(
        "group.share.max.assignment.interval.ms",
        INT,
        15_000,
        valid=at_least(0),
        doc="Maximum assignment interval that can be configured for a share group.",
    )
    assignor_offload_enabled = option(
        "group.share.assignor.offload.enable",
        BOOLEAN,
        True,
        doc="Whether assignments of share groups are computed off the event loop.",
    )
    initialize_retry_interval_ms = option(
        "group.share.initialize.retry.interval.ms",
        INT,
        30_000,
        valid=at_least(1),
        internal=True,
        importance=Importance.LOW,
        doc="Retry interval after the initialization of a share partition failed.",
    )

    @property
    def assignor_name(self) -> str:
        """The assignor's name."""
        return _named(self.assignors, SHARE_ASSIGNORS)[0]


class StreamsProtocolOptions(Section):
    """Options of streams groups (KIP-1071)."""

    session_timeout_ms = option(
        "group.streams.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="A streams group member without a heartbeat for this long is removed from the group.",
    )
    session_timeout_ms_min = option(
        "group.streams.min.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        doc="Minimum session timeout that can be configured for a streams group.",
    )
    session_timeout_ms_max = option(
        "group.streams.max.session.timeout.ms",
        INT,
        60_000,
        valid=at_least(1),
        doc="Maximum session timeout that can be configured for a streams group.",
    )
    heartbeat_interval_ms = option(
        "group.streams.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="Heartbeat interval given to the members of a streams group.",
    )
    heartbeat_interval_ms_min = option(
        "group.streams.min.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        doc="Minimum heartbeat interval that can be configured for a streams group.",
    )
    heartbeat_interval_ms_max = option(
        "group.streams.max.heartbeat.interval.ms",
        INT,
        15_000,
        valid=at_least(1),
        doc="Maximum heartbeat interval that can be configured for a streams group.",
    )
    size_max = option(
        "group.streams.max.size",
        INT,
        INT_MAX,
        valid=at_least(1),
        doc="Maximum members of a streams group.",
    )
    standby_replica_count = option(
        "group.streams.num.standby.replicas",
        INT,
        0,
        valid=at_least(0),
        doc="Standby replicas of each task of a streams group.",
    )
    standby_replica_count_max = option(
        "group.streams.max.standby.replicas",
        INT,
        2,
        valid=at_least(0),
        doc="Maximum standby replicas that can be configured for a streams group.",
    )
    initial_rebalance_delay_ms = option(
        "group.streams.initial.rebalance.delay.ms",
        INT,
        3000,
        valid=at_least(0),
        doc="How long the first rebalance of a streams group waits for more members to join.",
    )
    assignment_interval_ms = option(
        "group.streams.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        doc="Minimum interval between two assignments of a streams group.",
    )
    assignment_interval_ms_min = option(
        "group.streams.min.assignment.interval.ms",
        INT,
        0,
        valid=at_least(0),
        doc="Minimum assignment interval that can be configured for a streams group.",
    )
    assignment_interval_ms_max = option(
        "group.streams.max.assignment.interval.ms",
        INT,
        15_000,
        valid=at_least(0),
        doc="Maximum assignment interval that can be configured for a streams group.",
    )
    assignor_offload_enabled = option(
        "group.streams.assignor.offload.enable",
        BOOLEAN,
        True,
        doc="Whether assignments of streams groups are computed off the event loop.",
    )
