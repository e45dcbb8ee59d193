"""Group configs, which override the broker's ``group.*`` options for one group.

They can be set, described and listed for every group. Configs of consumer groups take effect with the next heartbeat,
those of other group types with the protocol they belong to. Classic groups have no group configs.
"""

from __future__ import annotations

import re
from typing import Final

from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    STRING,
    Scope,
    Section,
    Synonym,
    Validator,
    at_least,
    one_of,
    option,
)

_DURATION: Final = r"by_duration:P(?=.)([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]{1,9})?S)?)?"
# Compiled on first use, which on most nodes never comes: this keeps startup fast.
_RESET: Final[Validator[str]] = Validator(
    lambda value: value in ("latest", "earliest") or re.fullmatch(_DURATION, value) is not None,
    "latest, earliest or by_duration:PnDTnHnMn.nS",
)
_DEAD_LETTERS: Final[Validator[str]] = Validator(
    lambda value: not value.startswith("__"), "a topic name that does not start with __, or empty"
)
GROUP: Final = Scope.GROUP


class ConsumerGroupOptions(Section):
    session_timeout_ms = option(
        "consumer.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.consumer.session.timeout.ms")],
        doc="Session timeout: a member of this consumer group that sends no heartbeat for this long is removed.",
    )
    heartbeat_interval_ms = option(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.consumer.heartbeat.interval.ms")],
        doc="The heartbeat interval of the members of this consumer group.",
    )
    assignment_interval_ms = option(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.consumer.assignment.interval.ms")],
        doc="The minimum time between two assignments of this consumer group.",
    )


class ShareGroupOptions(Section):
    session_timeout_ms = option(
        "share.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.share.session.timeout.ms")],
        doc="Session timeout: a member of this share group that sends no heartbeat for this long is removed.",
    )
    heartbeat_interval_ms = option(
        "share.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.share.heartbeat.interval.ms")],
        doc="The heartbeat interval of the members of this share group.",
    )
    assignment_interval_ms = option(
        "share.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.share.assignment.interval.ms")],
        doc="The minimum time between two assignments of this share group.",
    )
    record_lock_duration_ms = option(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        valid=at_least(1000),
        scope=GROUP,
        synonyms=[Synonym("group.share.record.lock.duration.ms")],
        doc="The acquisition lock duration: how long a consumer holds a delivered record before it becomes available "
        "again.",
    )
    delivery_count_limit = option(
        "share.delivery.count.limit",
        INT,
        5,
        valid=at_least(2),
        scope=GROUP,
        synonyms=[Synonym("group.share.delivery.count.limit")],
        doc="The maximum number of delivery attempts of a record; after that it is archived.",
    )
    partition_record_locks_max = option(
        "share.partition.max.record.locks",
        INT,
        2000,
        valid=at_least(100),
        scope=GROUP,
        synonyms=[Synonym("group.share.partition.max.record.locks")],
        doc="The maximum number of acquired, not yet acknowledged records per share partition.",
    )
    auto_offset_reset = option(
        "share.auto.offset.reset",
        STRING,
        "latest",
        valid=_RESET,
        scope=GROUP,
        doc="The start position of the group in a partition without a start offset: latest, earliest, or "
        "by_duration before now.",
    )
    isolation_level = option(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        valid=one_of("read_committed", "read_uncommitted"),
        scope=GROUP,
        doc="Whether records of open and aborted transactions are delivered: read_uncommitted delivers them, "
        "read_committed does not.",
    )
    renew_acknowledge_enable = option(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        True,
        scope=GROUP,
        doc="Whether a consumer may extend the acquisition lock of a record with a renew acknowledgement.",
    )
    dead_letter_topic = option(
        "errors.deadletterqueue.topic.name",
        STRING,
        "",
        valid=_DEAD_LETTERS,
        scope=GROUP,
        doc="The dead-letter topic for records that were rejected or reached the delivery count limit. Empty: no "
        "dead-letter topic. Requires share.version 2.",
    )
    dead_letters_copy = option(
        "errors.deadletterqueue.copy.record.enable",
        BOOLEAN,
        False,
        scope=GROUP,
        doc="Whether a dead-letter record contains the key and value of the original record, besides the headers with "
        "its position.",
    )


class StreamsGroupOptions(Section):
    session_timeout_ms = option(
        "streams.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.streams.session.timeout.ms")],
        doc="Session timeout: a member that sends no heartbeat for this long is removed. Takes effect with streams "
        "groups.",
    )
    heartbeat_interval_ms = option(
        "streams.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.streams.heartbeat.interval.ms")],
        doc="The heartbeat interval of the members. Takes effect with streams groups.",
    )
    assignment_interval_ms = option(
        "streams.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.streams.assignment.interval.ms")],
        doc="The minimum time between two assignments. Takes effect with streams groups.",
    )
    initial_rebalance_delay_ms = option(
        "streams.initial.rebalance.delay.ms",
        INT,
        3000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.streams.initial.rebalance.delay.ms")],
        doc="How long the first rebalance waits for more members. Takes effect with streams groups.",
    )
    standby_replica_count = option(
        "streams.num.standby.replicas",
        INT,
        0,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.streams.num.standby.replicas")],
        doc="The number of standby replicas of each task. Takes effect with streams groups.",
    )
