"""A value stands in its partition once, or not at all."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly, History


def check(history: History) -> list[Anomaly]:
    first_seen: dict[str, tuple[str, int]] = {}
    reported: dict[tuple[str, str, int], None] = {}
    for partition, offset, value in history.observations():
        place = first_seen.setdefault(value, (partition, offset))
        if place != (partition, offset):
            reported[value, partition, offset] = None
    return [
        Anomaly("duplicate", f"{value} is at {first_seen[value]} and at {(partition, offset)}")
        for value, partition, offset in reported
    ]
