"""How much of the metadata log is kept: ``metadata.max.retention.bytes`` and ``metadata.max.retention.ms``.

The log begins where one of its snapshots ends. As long as log and snapshots together are larger than they may be, or
the oldest snapshot is older than it may be, that one goes, and the log begins with the next: whoever has fallen behind
further than that must load a snapshot first. The newest snapshot is never among those that go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from millbeck.metadata.snapshot import SnapshotId


class KeptSnapshot(NamedTuple):
    id: SnapshotId
    size_bytes: int
    timestamp_ms: int
    """Of the last record in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRetention:
    """Negative is without a bound; the default keeps the newest snapshot and what follows it."""

    size_bytes_max: int = 0
    age_ms_max: int = -1

    def begins_with(
        self,
        snapshots: Sequence[KeptSnapshot],
        *,
        log_start_offset: int,
        log_bytes_from: Callable[[int], int],
        now_ms: int,
    ) -> KeptSnapshot | None:
        """The snapshot to begin with, of those there are, oldest first; None while the log may begin before them.

        ``log_bytes_from`` says how large the log is when it begins at an offset.
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

    def _is_too_old(self, snapshot: KeptSnapshot, now_ms: int) -> bool:
        return 0 <= self.age_ms_max < now_ms - snapshot.timestamp_ms

    def expires_at_ms(self, snapshots: Sequence[KeptSnapshot]) -> int | None:
        """When the oldest of them will be too old, if it ever will."""
        return snapshots[0].timestamp_ms + self.age_ms_max + 1 if len(snapshots) > 1 and self.age_ms_max >= 0 else None
