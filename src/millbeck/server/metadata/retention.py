"""Retention of the metadata log: ``metadata.max.retention.bytes`` and ``metadata.max.retention.ms``.

The log starts at the end of one of its snapshots. While the log and its snapshots together exceed the size limit, or
the oldest snapshot exceeds the age limit, the oldest snapshot is deleted and the log start advances to the end of the
next one. A follower that is further behind must fetch a snapshot. The newest snapshot is never deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from millbeck.metadata.snapshot import SnapshotId


class RetainedSnapshot(NamedTuple):
    id: SnapshotId
    size_bytes: int
    timestamp_ms: int
    """The timestamp of the last record that the snapshot contains."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRetention:
    """The retention limits. Negative is unlimited; the default keeps the newest snapshot and the log after it."""

    size_bytes_max: int = 0
    age_ms_max: int = -1

    def oldest_to_keep(
        self,
        snapshots: Sequence[RetainedSnapshot],
        *,
        log_start_offset: int,
        log_bytes_from: Callable[[int], int],
        now_ms: int,
    ) -> RetainedSnapshot | None:
        """The oldest of ``snapshots`` (oldest first) to keep; None while the log may start before all of them.

        ``log_bytes_from`` returns the size of the log if it started at an offset.
        """
        has_first = log_start_offset >= snapshots[0].id.end_offset
        oldest = snapshots[0] if has_first else None
        start_offset = log_start_offset
        total_bytes = sum(each.size_bytes for each in snapshots)
        for following in snapshots[1:] if has_first else snapshots:
            is_too_large = 0 <= self.size_bytes_max < total_bytes + log_bytes_from(start_offset)
            is_too_old = len(snapshots) > 1 and self._is_too_old(oldest or snapshots[0], now_ms)
            if not is_too_large and not is_too_old:
                break
            total_bytes -= 0 if oldest is None else oldest.size_bytes
            oldest, start_offset = following, following.id.end_offset
        return oldest

    def _is_too_old(self, snapshot: RetainedSnapshot, now_ms: int) -> bool:
        return 0 <= self.age_ms_max < now_ms - snapshot.timestamp_ms

    def expires_at_ms(self, snapshots: Sequence[RetainedSnapshot]) -> int | None:
        """The time at which the oldest snapshot exceeds the age limit; None if it never will."""
        return snapshots[0].timestamp_ms + self.age_ms_max + 1 if len(snapshots) > 1 and self.age_ms_max >= 0 else None
