"""Whether a pipeline's output is that of its input, no more and no less, for readers of what is committed. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from millbeck.pipeline.demo.recount import differences, recount, written

PROBLEMS_SHOWN = 20
Place = tuple[str, int, int]
"""Topic, partition, offset."""


class Row(NamedTuple):
    key: bytes
    value: bytes
    timestamp_ms: int


Read = Mapping[Place, Row]


class Bar(NamedTuple):
    """What a run needs to mean anything."""

    kills: Mapping[str, int]
    """How many of each kind at least."""
    kills_in_all: int
    windows: int
    copies: int


def rows_of(read: Read, topic: str) -> list[Row]:
    return [read[place] for place in sorted(read) if place[0] == topic]


def audit_windows(customers: Sequence[Row], orders: Sequence[Row], windows: Sequence[Row], before_ms: int) -> list[str]:
    expected = recount(
        [(row.key, row.value) for row in customers],
        [(row.timestamp_ms, row.value) for row in orders],
        before_ms=before_ms,
    )
    found, twice = written((row.key, row.value) for row in windows)
    return differences(expected, found, twice)


def audit_copies(orders: Sequence[Row], copies: Sequence[Row]) -> list[str]:
    wanted = Counter((row.key, row.value) for row in orders)
    found = Counter((row.key, row.value) for row in copies)
    problems = [
        f"order {key.decode()} is there {found[key, value]} times, not {count}"
        for (key, value), count in sorted(wanted.items())
        if found[key, value] != count
    ]
    return problems + [f"order {key.decode()} was never ordered" for key, value in sorted(found.keys() - wanted.keys())]


def audit_tail(tail: Read, final: Read) -> list[str]:
    """What somebody read meanwhile is what is there at the end."""
    problems = [f"{place} was read before the end and is not there now" for place in sorted(tail.keys() - final.keys())]
    problems += [f"{place} was passed over by the one who read along" for place in sorted(final.keys() - tail.keys())]
    both = sorted(tail.keys() & final.keys())
    return problems + [
        f"{place} was {tail[place]} and is {final[place]}" for place in both if tail[place] != final[place]
    ]


def emptiness(bar: Bar, kills: Mapping[str, int], windows: int, copies: int) -> list[str]:
    """Why the run says nothing, if it does not."""
    problems = [
        f"only {kills.get(kind, 0)} kills of {kind}, not {least}"
        for kind, least in sorted(bar.kills.items())
        if kills.get(kind, 0) < least
    ]
    if sum(kills.values()) < bar.kills_in_all:
        problems.append(f"only {sum(kills.values())} kills landed, not {bar.kills_in_all}")
    if windows < bar.windows:
        problems.append(f"only {windows} windows were written, not {bar.windows}")
    if copies < bar.copies:
        problems.append(f"only {copies} orders were copied, not {bar.copies}")
    return problems
