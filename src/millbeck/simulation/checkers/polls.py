"""A consumer that reads on skips no record that was there: the next offset it sees is the next one in the log."""

from __future__ import annotations

import itertools

from millbeck.testing.sim.history import Anomaly, History


def check(history: History) -> list[Anomaly]:
    known: dict[str, dict[int, None]] = {}
    for partition, offset, _ in history.observations():
        known.setdefault(partition, {})[offset] = None
    following: dict[tuple[str, int], int] = {}
    for partition, offsets in known.items():
        ordered = sorted(offsets)
        following.update(((partition, before), after) for before, after in itertools.pairwise(ordered))
    anomalies = []
    position: dict[tuple[str, int, str], int] = {}
    for poll in history.polls:
        key = (poll.consumer, poll.assignment, poll.partition)
        for offset, _ in poll.records:
            before = position.get(key)
            if before is not None and offset > before and following[poll.partition, before] != offset:
                missed = following[poll.partition, before]
                anomalies.append(Anomaly("poll skip", f"{key} went from {before} to {offset} and missed {missed}"))
            position[key] = offset
    return anomalies
