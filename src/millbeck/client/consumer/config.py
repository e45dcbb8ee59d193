"""Settings of a consumer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, Self

from millbeck.client.config import CLIENT, MINUTE_MS, ClientConfig, Value
from millbeck.kernel.errors import InvalidConfig
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
"""By what a configuration may say: the name on the wire, or the Java class."""

_DURATION: Final = re.compile(
    r"by_duration:P(?:(?P<days>[0-9]{1,6})D)?"
    r"(?:T(?:(?P<hours>[0-9]{1,9})H)?(?:(?P<minutes>[0-9]{1,9})M)?(?:(?P<seconds>[0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?",
    re.IGNORECASE | re.ASCII,
)


def duration_ms(text: str) -> int | None:
    """The milliseconds of ``by_duration:<ISO 8601>``, or None for any other text."""
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


class ConsumerConfig(ClientConfig):
    group_id = option(
        "group.id",
        STRING,
        None,
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="The group this consumer shares partitions and committed offsets with.",
    )
    group_instance_id = option(
        "group.instance.id",
        STRING,
        None,
        scope=CLIENT,
        doc="A name that outlives restarts: a member that returns under it in time gets its partitions back.",
    )
    group_protocol = option(
        "group.protocol",
        STRING,
        "classic",
        valid=_group_protocol,
        scope=CLIENT,
        doc="How groups share partitions: members do, or with consumer the broker does, without stopping those "
        "whose part stays the same.",
    )
    group_remote_assignor = option(
        "group.remote.assignor",
        STRING,
        None,
        scope=CLIENT,
        doc="With group.protocol=consumer: the assignor this member prefers, uniform or range. The group uses the one "
        "that most ask for.",
    )
    session_timeout_ms = option(
        "session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="Without a heartbeat for this long a member is taken for dead.",
    )
    heartbeat_interval_ms = option(
        "heartbeat.interval.ms",
        INT,
        3_000,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="How often a member says that it is alive; a third of the session timeout at most.",
    )
    max_poll_interval_ms = option(
        "max.poll.interval.ms",
        INT,
        5 * MINUTE_MS,
        valid=at_least(1),
        scope=CLIENT,
        doc="A member that does not poll for this long leaves its group; also how long a rebalance waits for it.",
    )
    max_poll_records = option(
        "max.poll.records", INT, 500, valid=at_least(1), scope=CLIENT, doc="Most records one poll returns."
    )
    partition_assignment_strategy = option(
        "partition.assignment.strategy",
        LIST,
        ("range", "cooperative-sticky"),
        valid=all_of(
            non_empty(),
            distinct(),
            Validator(
                lambda names: all(name in ASSIGNOR_NAMES for name in names),
                "a list of range, roundrobin, sticky and cooperative-sticky",
            ),
        ),
        scope=CLIENT,
        doc="Strategies for sharing partitions, best first; a group uses one that all members have.",
    )
    auto_offset_reset = option(
        "auto.offset.reset",
        STRING,
        "latest",
        valid=_reset_policy,
        scope=CLIENT,
        doc="Where to begin without a committed offset or with one that is gone: earliest, latest, "
        "by_duration:<ISO 8601 duration> before now, or none, which is an error.",
    )
    enable_auto_commit = option(
        "enable.auto.commit", BOOLEAN, True, scope=CLIENT, doc="Commit what earlier polls returned, from time to time."
    )
    auto_commit_interval_ms = option(
        "auto.commit.interval.ms", INT, 5_000, valid=at_least(0), scope=CLIENT, doc="How often that is."
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
        doc="A broker answers a fetch when it has this much.",
    )
    fetch_max_bytes = option(
        "fetch.max.bytes", INT, 50 * MIB, valid=at_least(0), scope=CLIENT, doc="Most bytes one fetch returns."
    )
    fetch_max_wait_ms = option(
        "fetch.max.wait.ms",
        INT,
        500,
        valid=at_least(0),
        scope=CLIENT,
        doc="A broker answers a fetch after this time at the latest.",
    )
    max_partition_fetch_bytes = option(
        "max.partition.fetch.bytes",
        INT,
        1 * MIB,
        valid=at_least(0),
        scope=CLIENT,
        importance=Importance.HIGH,
        doc="Most bytes one fetch returns of one partition, a single larger batch excepted.",
    )
    check_crcs = option(
        "check.crcs", BOOLEAN, True, scope=CLIENT, importance=Importance.LOW, doc="Verify checksums of what arrives."
    )
    decompressed_max_bytes = option(
        "decompressed.max.bytes",
        INT,
        256 * MIB,
        valid=at_least(1),
        scope=CLIENT,
        importance=Importance.LOW,
        doc="A batch that would become larger than this when decompressed is an error.",
    )
    allow_auto_create_topics = option(
        "allow.auto.create.topics",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="Subscribing to a topic that does not exist may create it, if the broker does so at all.",
    )
    exclude_internal_topics = option(
        "exclude.internal.topics",
        BOOLEAN,
        True,
        scope=CLIENT,
        doc="A subscription by pattern leaves internal topics out.",
    )

    @property
    def is_broker_assigning(self) -> bool:
        """Whether the broker shares partitions out (KIP-848)."""
        return self.group_protocol.lower() == "consumer"

    @property
    def assignors(self) -> tuple[str, ...]:
        """Names as members exchange them."""
        return tuple(dict.fromkeys(ASSIGNOR_NAMES[name] for name in self.partition_assignment_strategy))

    @property
    def reads_committed(self) -> bool:
        return self.isolation_level == "read_committed"

    @classmethod
    def parse(cls, settings: Mapping[str, Value]) -> Self:
        section = super().parse(settings)
        if section.group_id is None and section.enable_auto_commit:
            if settings.get("enable.auto.commit") is not None:
                raise InvalidConfig("enable.auto.commit=true needs a group.id to commit for")
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
