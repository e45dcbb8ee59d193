"""Settings of the consumer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Self

from millbeck.client.config import CLIENT, MINUTE_MS, Value
from millbeck.client.consumer.decoding_config import DecodingConfig
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.java_names import full_name
from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    STRING,
    Importance,
    Validator,
    all_of,
    at_least,
    distinct,
    non_empty,
    one_of,
    option,
)

MIB: Final = 1024 * 1024

ASSIGNOR_NAMES: Final = {
    "range": "range",
    "roundrobin": "roundrobin",
    "sticky": "sticky",
    "cooperative-sticky": "cooperative-sticky",
    "org.apache.kafka.clients.consumer.RangeAssignor": "range",
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": "roundrobin",
    "org.apache.kafka.clients.consumer.StickyAssignor": "sticky",
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}
"""Assignors by their spelling in configurations: the protocol name, or the Java class, also without its package."""

_DURATION: Final = re.compile(
    r"by_duration:P(?:(?P<days>[0-9]{1,6})D)?"
    r"(?:T(?:(?P<hours>[0-9]{1,9})H)?(?:(?P<minutes>[0-9]{1,9})M)?(?:(?P<seconds>[0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)


def duration_ms(text: str) -> int | None:
    """The milliseconds of ``by_duration:<ISO 8601>``; None for any other text."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes = (int(found[part] or 0) for part in ("days", "hours", "minutes"))
    return ((days * 24 + hours) * 60 + minutes) * MINUTE_MS + round(float(found["seconds"] or 0) * 1000)


_group_protocol: Validator[str] = Validator(lambda text: text.lower() in ("classic", "consumer"), "classic or consumer")
_reset_policy: Validator[str] = Validator(
    lambda text: text in ("earliest", "latest", "none") or duration_ms(text) is not None,
    "earliest, latest, none or by_duration:<ISO 8601 duration>",
)


class ConsumerConfig(DecodingConfig):
    group_id = option(
        "group.id",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The consumer group this consumer joins.",
    )
    group_instance_id = option(
        "group.instance.id",
        STRING,
        None,
        scope=CLIENT,
        doc="The id for static membership: a member that returns with the same id within the session "
        "timeout keeps its partitions.",
    )
    group_protocol = option(
        "group.protocol",
        STRING,
        "classic",
        valid=_group_protocol,
        scope=CLIENT,
        doc="The rebalance protocol: classic (members assign partitions) or consumer (the broker assigns them, "
        "and members keep reading partitions that do not move).",
    )
    group_remote_assignor = option(
        "group.remote.assignor",
        STRING,
        None,
        scope=CLIENT,
        doc="With group.protocol=consumer: the server-side assignor this member prefers, uniform or range. The group "
        "uses the one preferred by most members.",
    )
    session_timeout_ms = option(
        "session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="A member without a heartbeat for this long is removed from the group.",
    )
    heartbeat_interval_ms = option(
        "heartbeat.interval.ms",
        INT,
        3_000,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The interval of heartbeats; should be at most a third of the session timeout.",
    )
    max_poll_interval_ms = option(
        "max.poll.interval.ms",
        INT,
        5 * MINUTE_MS,
        valid=at_least(1),
        scope=CLIENT,
        doc="A member that does not poll for this long leaves the group; also the rebalance timeout.",
    )
    max_poll_records = option(
        "max.poll.records", INT, 500, valid=at_least(1), scope=CLIENT, doc="Maximum number of records per poll."
    )
    partition_assignment_strategy = option(
        "partition.assignment.strategy",
        LIST,
        ("range", "cooperative-sticky"),
        valid=all_of(non_empty(), distinct()),
        scope=CLIENT,
        doc="Assignors in order of preference; the group uses one that all members support. Besides range, roundrobin, "
        "sticky and cooperative-sticky: entry points in the group millbeck.assignors, or module:class.",
    )
    auto_offset_reset = option(
        "auto.offset.reset",
        STRING,
        "latest",
        valid=_reset_policy,
        scope=CLIENT,
        doc="The start position without a valid committed offset: earliest, latest, by_duration:<ISO "
        "8601 duration> before now, or none, which raises an error.",
    )
    enable_auto_commit = option(
        "enable.auto.commit",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="Whether the offsets of returned records are committed periodically.",
    )
    auto_commit_interval_ms = option(
        "auto.commit.interval.ms", INT, 5_000, valid=at_least(0), scope=CLIENT, doc="The auto-commit interval."
    )
    isolation_level = option(
        "isolation.level",
        STRING,
        "read_uncommitted",
        valid=one_of("read_uncommitted", "read_committed"),
        scope=CLIENT,
        doc="read_committed returns records of transactions only once they are committed.",
    )
    fetch_min_bytes = option(
        "fetch.min.bytes",
        INT,
        1,
        valid=at_least(0),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The minimum number of bytes of a fetch response; the broker waits for them, for at most "
        "fetch.max.wait.ms.",
    )
    fetch_max_bytes = option(
        "fetch.max.bytes", INT, 50 * MIB, valid=at_least(0), scope=CLIENT, doc="Maximum number of bytes per fetch."
    )
    fetch_max_wait_ms = option(
        "fetch.max.wait.ms",
        INT,
        500,
        valid=at_least(0),
        scope=CLIENT,
        doc="The maximum time that a broker delays a fetch response.",
    )
    max_partition_fetch_bytes = option(
        "max.partition.fetch.bytes",
        INT,
        1 * MIB,
        valid=at_least(0),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="Maximum number of bytes per partition and fetch, except for a single larger batch.",
    )
    check_crcs = option(
        "check.crcs",
        BOOLEAN,
        True,
        scope=CLIENT,
        importance=Importance.LOW,
        doc="Whether the checksums of fetched batches are verified.",
    )
    decompressed_max_bytes = option(
        "decompressed.max.bytes",
        INT,
        256 * MIB,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="A batch that decompresses to more bytes than this is an error.",
    )
    allow_auto_create_topics = option(
        "allow.auto.create.topics",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="Whether the broker may create a missing topic on subscription, if auto.create.topics.enable is set there.",
    )
    exclude_internal_topics = option(
        "exclude.internal.topics",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="Whether internal topics are excluded from pattern subscriptions.",
    )

    @property
    def rebalance_timeout_ms(self) -> int:
        """The maximum time that this member may take to rejoin."""
        return self.max_poll_interval_ms

    @property
    def is_broker_assigning(self) -> bool:
        """Whether the broker assigns partitions (KIP-848)."""
        return self.group_protocol.lower() == "consumer"

    @property
    def assignors(self) -> tuple[str, ...]:
        """The assignors: the protocol names of the built-in ones, and others as they are given."""
        named = (full_name(name, ASSIGNOR_NAMES) for name in self.partition_assignment_strategy)
        return tuple(dict.fromkeys(ASSIGNOR_NAMES.get(name, name) for name in named))

    @property
    def reads_committed(self) -> bool:
        return self.isolation_level == "read_committed"

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        section = super().parse(settings)
        if section.group_id is None and section.enable_auto_commit:
            if settings.get("enable.auto.commit") is not None:
                raise InvalidConfig("enable.auto.commit=true needs a group.id")
            section = section.replace(enable_auto_commit=False)
        return section

    def check(self) -> None:
        if self.group_id == "":
            raise InvalidConfig("group.id is empty")
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise InvalidConfig(
                f"heartbeat.interval.ms ({self.heartbeat_interval_ms}) must be less than session.timeout.ms "
                f"({self.session_timeout_ms})"
            )
