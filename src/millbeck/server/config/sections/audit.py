"""Options of the audit: which events are recorded, and where."""

from __future__ import annotations

from millbeck.kernel.options import (
    BOOLEAN,
    INT,
    LIST,
    LONG,
    STRING,
    Importance,
    Section,
    all_of,
    at_least,
    distinct,
    each_of,
    option,
)
from millbeck.kernel.units import MIB
from millbeck.security.audit.events import KINDS


class AuditOptions(Section):
    file = option(
        "millbeck.audit.file",
        STRING,
        "",
        doc="The audit file, with one JSON line per event. Empty: no file.",
    )
    file_bytes = option(
        "millbeck.audit.file.bytes",
        LONG,
        64 * MIB,
        valid=at_least(4096),
        importance=Importance.LOW,
        doc="The size at which the file is rotated.",
    )
    file_count = option(
        "millbeck.audit.file.count",
        INT,
        5,
        valid=at_least(2),
        importance=Importance.LOW,
        doc="The number of files: the current one and the rotated ones, of which .1 is the newest.",
    )
    topic = option(
        "millbeck.audit.topic",
        BOOLEAN,
        False,
        doc="Whether the audit is written to the topic __millbeck_audit, by nodes with the role broker. If it "
        "does not exist, it is created with one partition and a retention of 90 days.",
    )
    events = option(
        "millbeck.audit.events",
        LIST,
        KINDS,
        valid=all_of(distinct(), each_of(*KINDS)),
        importance=Importance.LOW,
        doc=f"The recorded events: any of {', '.join(KINDS)}.",
    )
    repeat_ms = option(
        "millbeck.audit.repeat.ms",
        LONG,
        60_000,
        valid=at_least(1000),
        importance=Importance.LOW,
        doc="Repetitions of an event within this time are counted and written as one line.",
    )
    throttle_ms = option(
        "millbeck.audit.throttle.ms",
        LONG,
        1000,
        valid=at_least(1),
        importance=Importance.LOW,
        doc="Clients that a quota throttles for at least this long are recorded.",
    )
