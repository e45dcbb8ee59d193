"""K1 and K4: who reads a compacted log from its start ends with the table that all the writes come to.

The latest record of each key is there, at the offset it was acknowledged with. A tombstone may have gone in time, and
with it the key.
"""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly
from millbeck.testing.sim.table_history import TableHistory, Write, key_of


def check(history: TableHistory) -> list[Anomaly]:
    anomalies = []
    for partition in history.partitions():
        latest: dict[str, Write] = {}
        for write in history.writes(partition):
            latest[write.key] = write
        last_read: dict[str, tuple[int, str]] = {}
        for offset, value in history.final.get(partition, ()):
            last_read[key_of(value)] = (offset, value)
        for key, write in latest.items():
            found = last_read.get(key)
            if found is None:
                if not write.is_tombstone:
                    anomalies.append(Anomaly("lost latest", f"{write.value} at {write.offset} of {partition} is gone"))
            elif found[0] < write.offset:
                kind = "resurrected" if write.is_tombstone else "lost latest"
                anomalies.append(Anomaly(kind, f"{partition} ends with {found}, {write} was written after it"))
    return anomalies
