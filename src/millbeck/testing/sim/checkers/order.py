"""What one producer sends to one partition stands there in the order in which it was sent."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly, History


def check(history: History) -> list[Anomaly]:
    offsets: dict[str, int] = {}
    for _, read_offset, value in history.observations():
        offsets.setdefault(value, read_offset)
    anomalies = []
    last: dict[tuple[str, str], tuple[int, str]] = {}
    for send in history.sends:  # in send order for each producer and partition
        offset = offsets.get(send.value, send.offset)
        if offset is None:
            continue
        key = (send.producer, send.partition)
        before = last.get(key)
        if before is not None and offset <= before[0]:
            anomalies.append(Anomaly("order", f"{send!r} is at {offset}, the earlier {before[1]} at {before[0]}"))
        last[key] = (offset, send.value)
    return anomalies
