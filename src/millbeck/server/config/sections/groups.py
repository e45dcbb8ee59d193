"""Options of single groups, which override the broker's ``group.*`` ones.

Groups can be given them, and they are described and listed. Those of a consumer group take effect with its next
heartbeat; the others with the protocols they belong to. The classic protocol knows none of them.
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
# Compiled when it is first needed, which on most nodes is never: starting takes long enough.
_RESET: Final[Validator[str]] = Validator(
    lambda value: value in ("latest", "earliest") or re.fullmatch(_DURATION, value) is not None,
    "latest, earliest or by_duration:PnDTnHnMn.nS",
)
_DEAD_LETTERS: Final[Validator[str]] = Validator(
    lambda value: not value.startswith("__"), "a topic whose name does not begin with __, or nothing"
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
        doc="Without a heartbeat for this long a member of this consumer group is removed.",
    )
    heartbeat_interval_ms = option(
        "consumer.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.consumer.heartbeat.interval.ms")],
        doc="How often members of this consumer group send a heartbeat.",
    )
    assignment_interval_ms = option(
        "consumer.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.consumer.assignment.interval.ms")],
        doc="The least time between two computed assignments of this consumer group.",
    )


class ShareGroupOptions(Section):
    session_timeout_ms = option(
        "share.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.share.session.timeout.ms")],
        doc="Without a heartbeat for this long a member is removed.",
    )
    heartbeat_interval_ms = option(
        "share.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.share.heartbeat.interval.ms")],
        doc="How often members send a heartbeat.",
    )
    assignment_interval_ms = option(
        "share.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.share.assignment.interval.ms")],
        doc="The least time between two computed assignments.",
    )
    record_lock_duration_ms = option(
        "share.record.lock.duration.ms",
        INT,
        30_000,
        valid=at_least(1000),
        scope=GROUP,
        synonyms=[Synonym("group.share.record.lock.duration.ms")],
        doc="How long a delivered record is a consumer's before it is delivered again.",
    )
    delivery_count_limit = option(
        "share.delivery.count.limit",
        INT,
        5,
        valid=at_least(2),
        scope=GROUP,
        synonyms=[Synonym("group.share.delivery.count.limit")],
        doc="How often a record is delivered before it is given up.",
    )
    partition_record_locks_max = option(
        "share.partition.max.record.locks",
        INT,
        2000,
        valid=at_least(100),
        scope=GROUP,
        synonyms=[Synonym("group.share.partition.max.record.locks")],
        doc="How many records of one partition may be delivered and unsettled.",
    )
    auto_offset_reset = option(
        "share.auto.offset.reset",
        STRING,
        "latest",
        valid=_RESET,
        scope=GROUP,
        doc="Where a group begins in a partition that it has never read: at its end, at its beginning, or so long ago.",
    )
    isolation_level = option(
        "share.isolation.level",
        STRING,
        "read_uncommitted",
        valid=one_of("read_committed", "read_uncommitted"),
        scope=GROUP,
        doc="Whether records of open and aborted transactions are delivered.",
    )
    renew_acknowledge_enable = option(
        "share.renew.acknowledge.enable",
        BOOLEAN,
        True,
        scope=GROUP,
        doc="Whether a consumer may ask for more time with a record.",
    )
    dead_letter_topic = option(
        "errors.deadletterqueue.topic.name",
        STRING,
        "",
        valid=_DEAD_LETTERS,
        scope=GROUP,
        doc="The topic for records that the group has given up: rejected, or delivered as often as they may be. None "
        "when it is empty. In use from share.version 2 on.",
    )
    dead_letters_copy = option(
        "errors.deadletterqueue.copy.record.enable",
        BOOLEAN,
        False,
        scope=GROUP,
        doc="Whether a dead letter has the record's key and value, beside the headers that say where it stands.",
    )


class StreamsGroupOptions(Section):
    session_timeout_ms = option(
        "streams.session.timeout.ms",
        INT,
        45_000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.streams.session.timeout.ms")],
        doc="Without a heartbeat for this long a member is removed. Takes effect with streams groups.",
    )
    heartbeat_interval_ms = option(
        "streams.heartbeat.interval.ms",
        INT,
        5000,
        valid=at_least(1),
        scope=GROUP,
        synonyms=[Synonym("group.streams.heartbeat.interval.ms")],
        doc="How often members send a heartbeat. Takes effect with streams groups.",
    )
    assignment_interval_ms = option(
        "streams.assignment.interval.ms",
        INT,
        1000,
        valid=at_least(0),
        scope=GROUP,
        synonyms=[Synonym("group.streams.assignment.interval.ms")],
        doc="The least time between two computed assignments. Takes effect with streams groups.",
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
        doc="Standby copies of each task. Takes effect with streams groups.",
    )
