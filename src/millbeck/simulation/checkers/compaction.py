"""Check the invariants of compacted logs, K1 to K4 of docs/simulation.md."""

from __future__ import annotations

from millbeck.simulation.histories.history import Anomaly
from millbeck.simulation.histories.table_history import Scan, TableHistory, TableWrite, key_of


def lost_latest(history: TableHistory) -> list[Anomaly]:
    """K1 and K4: a reader of a compacted log from its start ends with the table that results from all writes.

    The latest record of each key is in the log, at the offset that was acknowledged. A tombstone may have been removed
    after its delete horizon.
    """
    anomalies = []
    for partition in history.partitions():
        latest: dict[str, TableWrite] = {}
        for write in history.writes(partition):
            latest[write.key] = write
        last_read: dict[str, tuple[int, str]] = {}
        for offset, value in history.final.get(partition, ()):
            last_read[key_of(value)] = (offset, value)
        for key, write in latest.items():
            found = last_read.get(key)
            if found is None:
                if not write.is_tombstone:
                    anomalies.append(
                        Anomaly("lost latest", f"{write.value} at {write.offset} of {partition} is missing")
                    )
            elif found[0] < write.offset:
                kind = "resurrected" if write.is_tombstone else "lost latest"
                anomalies.append(Anomaly(kind, f"{partition} ends with {found}, {write} was written after it"))
    return anomalies


def early_removals(history: TableHistory) -> list[Anomaly]:
    """K2: a reader that takes less than ``delete.retention.ms`` sees every deletion, and no older value reappears.

    For every read from the start, the last record it sees of a key is not older than what was acknowledged before the
    read began. Only a tombstone may be missing, with the records it deleted, and only if it was written long enough
    ago.
    """
    anomalies = []
    writes = {partition: history.writes(partition) for partition in history.partitions()}
    for scan in history.scans:
        if scan.ended_ms - scan.began_ms < max(1, history.delete_retention_ms):
            anomalies += _of_scan(scan, writes.get(scan.partition, []), history.delete_retention_ms)
    return anomalies


def _of_scan(scan: Scan, writes: list[TableWrite], delete_retention_ms: int) -> list[Anomaly]:
    latest: dict[str, TableWrite] = {}
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


def compacted_active(history: TableHistory) -> list[Anomaly]:
    """K3: no record of the active segment is removed by compaction."""
    anomalies = []
    for partition, active_from in history.active_from.items():
        present = {offset for offset, _ in history.final.get(partition, ())}
        anomalies += [
            Anomaly(
                "active compacted", f"{write} of {partition} is missing, but the active segment begins at {active_from}"
            )
            for write in history.writes(partition)
            if write.offset >= active_from and write.offset not in present
        ]
    return anomalies
