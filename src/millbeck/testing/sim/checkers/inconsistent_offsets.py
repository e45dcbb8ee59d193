"""An offset of a partition stands for one value, for every reader and for the producer that was told it."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly, History, Outcome


def check(history: History) -> list[Anomaly]:
    anomalies = []
    values: dict[tuple[str, int], str] = {}
    for send in history.sends:
        if send.outcome is Outcome.ACKNOWLEDGED and send.offset is not None:
            value = values.setdefault((send.partition, send.offset), send.value)
            if value != send.value:
                anomalies.append(_two_values(send.partition, send.offset, value, send.value))
    for partition, offset, value in history.observations():
        other = values.setdefault((partition, offset), value)
        if other != value:
            anomalies.append(_two_values(partition, offset, other, value))
    return anomalies


def _two_values(partition: str, offset: int, one: str, other: str) -> Anomaly:
    return Anomaly("inconsistent offsets", f"{partition} has {one} and {other} at {offset}")
