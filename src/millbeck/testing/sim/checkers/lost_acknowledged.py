"""Every acknowledged record is in the final read of its partition."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly, History, Outcome


def check(history: History) -> list[Anomaly]:
    present = {partition: {value for _, value in records} for partition, records in history.final.items()}
    anomalies = []
    for send in history.sends:
        if send.outcome is not Outcome.ACKNOWLEDGED:
            continue
        values = present.get(send.partition)
        if values is None:
            anomalies.append(Anomaly("lost acknowledged", f"{send!r}: {send.partition} was never read to its end"))
        elif send.value not in values:
            anomalies.append(Anomaly("lost acknowledged", f"{send!r} at offset {send.offset}"))
    return anomalies
