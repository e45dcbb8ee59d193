"""A consumer that reads on never goes back."""

from __future__ import annotations

import itertools

from millbeck.testing.sim.history import Anomaly, History


def check(history: History) -> list[Anomaly]:
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
