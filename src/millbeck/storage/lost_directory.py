"""An entry of ``log.dirs`` that could not even be opened when the node started: it has nothing, and takes nothing.

The node goes on with the others. What was here cannot be known, not even the directory's id, so the broker registers
without it, and the controller sends nobody here for the replicas that it knows to be in it.
"""

from __future__ import annotations

from millbeck.kernel.ids import TopicPartition, Uuid
from millbeck.storage.directory import NO_BROKER_EPOCH, LogDirectory, TreeRemoval
from millbeck.storage.log import Log


class LostDirectory(LogDirectory):
    """Offline from the beginning, without a lock on anything."""

    def __init__(self, path: str, reason: str) -> None:
        self.path = path
        self.logs: dict[TopicPartition, Log] = {}
        self.futures: dict[TopicPartition, Log] = {}
        self.offline_reason: str | None = reason
        self.offline_count = 0
        self.on_flush_wanted = None
        self.meta = None
        self.had_clean_shutdown, self.previous_broker_epoch = False, NO_BROKER_EPOCH

    def partitions(self) -> list[tuple[TopicPartition, Uuid]]:
        return []

    def interrupted_moves(self) -> list[tuple[TopicPartition, Uuid]]:
        return []

    def leftovers(self) -> list[TreeRemoval]:
        return []

    def read_high_watermarks(self) -> dict[TopicPartition, int]:
        return {}

    def all_opened(self) -> None:
        """There was none."""

    def close(self, *, broker_epoch: int = NO_BROKER_EPOCH) -> bool:
        return False

    def abandon(self) -> None:
        """Nothing was taken."""
