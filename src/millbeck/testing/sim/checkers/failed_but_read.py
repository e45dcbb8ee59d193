"""What the log refused for certain is never read, and nothing is read that nobody sent to that partition."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly, History, Outcome


def check(history: History) -> list[Anomaly]:
    anomalies: dict[tuple[str, str], Anomaly] = {}
    for partition, offset, value in history.observations():
        send = history.sent(value)
        if send is None or send.partition != partition:
            anomalies[partition, value] = Anomaly("never sent", f"{value} is at {offset} of {partition}")
        elif send.outcome is Outcome.FAILED:
            anomalies[partition, value] = Anomaly("failed but read", f"{send!r} is at {offset}")
    return list(anomalies.values())
