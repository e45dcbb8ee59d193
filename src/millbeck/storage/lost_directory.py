"""An entry of ``log.dirs`` that could not be opened at startup: offline, without logs.

The node continues with its other directories. The content of this one is unknown, even its directory id, so the broker
registers without it, and the controller elects no leader for the replicas that it has assigned to it.
"""

from __future__ import annotations

from collections.abc import Collection

from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.storage.directory import NO_BROKER_EPOCH, DirectoryDeletion, LogDirectory
from millbeck.storage.log import Log


class OfflineLogDirectory(LogDirectory):
    """Offline from the beginning, and not locked."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        self.offline_reason: str | None = reason
        self.offline_count = 0
        self.on_flush_wanted = None
        self.on_damage = None
        self.meta = None
        self.had_clean_shutdown, self.previous_broker_epoch = False, NO_BROKER_EPOCH

    def partitions(self) -> list[tuple[TopicPartition, Uuid]]:
        return []

    def interrupted_moves(self) -> list[tuple[TopicPartition, Uuid]]:
        return []

    def leftovers(self) -> list[DirectoryDeletion]:
        return []

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return {}

    def all_opened(self, *, keep: Collection[TopicPartition] = ()) -> None:
        """Do nothing: no log was opened."""

    def close(self, *, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        return False

    def abandon(self) -> None:
        """Do nothing: nothing was opened or locked."""
