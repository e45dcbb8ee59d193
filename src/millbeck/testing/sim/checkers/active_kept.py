"""K3: nothing of the active segment is compacted away."""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly
from millbeck.testing.sim.table_history import TableHistory


def check(history: TableHistory) -> list[Anomaly]:
    anomalies = []
    for partition, active_from in history.active_from.items():
        present = {offset for offset, _ in history.final.get(partition, ())}
        anomalies += [
            Anomaly("active compacted", f"{write} of {partition} is gone, the active segment begins at {active_from}")
            for write in history.writes(partition)
            if write.offset >= active_from and write.offset not in present
        ]
    return anomalies
