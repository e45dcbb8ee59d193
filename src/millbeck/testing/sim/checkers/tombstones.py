"""K2: a reader that needs less than ``delete.retention.ms`` hears of every deletion, and no older value comes back.

For every read from the start: the last it sees of a key is not older than what was acknowledged before it began. Only a
tombstone may be missing, together with all that it deleted, and only when it was written long enough ago.
"""

from __future__ import annotations

from millbeck.testing.sim.history import Anomaly
from millbeck.testing.sim.table_history import Scan, TableHistory, Write, key_of


def check(history: TableHistory) -> list[Anomaly]:
    anomalies = []
    writes = {partition: history.writes(partition) for partition in history.partitions()}
    for scan in history.scans:
        if scan.ended_ms - scan.began_ms < max(1, history.delete_retention_ms):
            anomalies += _of_scan(scan, writes.get(scan.partition, []), history.delete_retention_ms)
    return anomalies


def _of_scan(scan: Scan, writes: list[Write], delete_retention_ms: int) -> list[Anomaly]:
    latest: dict[str, Write] = {}
    for write in writes:
        if write.acknowledged_ms < scan.began_ms:
            latest[write.key] = write
    last_read: dict[str, int] = {}
    for offset, value in scan.records:
        last_read[key_of(value)] = offset
    anomalies = []
    for key, write in latest.items():
        seen_offset = last_read.get(key)
        if seen_offset is None:
            may_be_gone = write.is_tombstone and scan.ended_ms - write.acknowledged_ms >= delete_retention_ms
            if not may_be_gone:
                anomalies.append(Anomaly("early removal", f"a read at {scan.began_ms} found nothing of {write}"))
        elif seen_offset < write.offset:
            kind = "resurrected" if write.is_tombstone else "stale read"
            anomalies.append(Anomaly(kind, f"a read at {scan.began_ms} ended with {key} at {seen_offset}: {write}"))
    return anomalies
