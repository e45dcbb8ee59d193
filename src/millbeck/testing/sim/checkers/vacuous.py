"""A run in which little happened proves little: too few acknowledgements or no final read are a failure of the test."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly, History


def check(history: History, *, acknowledged_count_min: int = 1) -> list[Anomaly]:
    anomalies = []
    count = history.acknowledged_count()
    if count < acknowledged_count_min:
        anomalies.append(
            Anomaly("vacuous", f"{count} sends were acknowledged, at least {acknowledged_count_min} expected")
        )
    if not any(history.final.values()):
        anomalies.append(Anomaly("vacuous", "nothing was read in the end"))
    return anomalies
