"""Checkers of what consumers see: offsets never decrease, and no record is skipped."""

from __future__ import annotations

import itertools

from millbeck.simulation.histories.history import Anomaly, History


def nonmonotonic_polls(history: History) -> list[Anomaly]:
    """Without a seek or a rebalance, a consumer's offsets never decrease."""
    anomalies = []
    position: dict[tuple[str, int, str], int] = {}
    for poll in history.polls:
        key = (poll.consumer, poll.assignment, poll.partition)
        for offset, _ in poll.records:
            before = position.get(key)
            if before is not None and offset <= before:
                anomalies.append(Anomaly("nonmonotonic poll", f"{key} went from {before} back to {offset}"))
            position[key] = offset
    for partition, records in history.final.items():
        offsets = [offset for offset, _ in records]
        if any(after <= before for before, after in itertools.pairwise(offsets)):
            anomalies.append(Anomaly("nonmonotonic poll", f"the final read of {partition} went back"))
    return anomalies


def poll_skips(history: History) -> list[Anomaly]:
    """Without a seek or a rebalance, a consumer skips no record: it sees the next offset of the log."""
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
