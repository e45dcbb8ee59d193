"""``cleaner-offset-checkpoint``: for each log of a directory, where its first dirty record is.

Written after the compacted segments are durable in the place of the old ones, so it never claims too much: after a
crash in between, what is clean already is compacted once more. A damaged file is as good as none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import TopicPartition
from millbeck.storage import checkpoints
from millbeck.storage.checkpoints import CheckpointError

log = logging.getLogger(__name__)


class CleanerCheckpoint:
    """One directory's. Changes are in memory until `job` is taken and run; one such job runs at a time."""

    def __init__(self, files: Files, directory: str) -> None:
        """Reads the file; raises OSError."""
        self._files = files
        self._directory = directory
        self._offsets: dict[TopicPartition, int] = {}
        self.is_changed = False
        try:
            self._offsets = checkpoints.read_offsets(files, directory, checkpoints.CLEANER_OFFSETS)
        except CheckpointError as error:
            log.error("%s/%s is damaged and not used: %s", directory, checkpoints.CLEANER_OFFSETS, error)

    def offset_of(self, name: TopicPartition) -> int | None:
        return self._offsets.get(name)

    def note(self, name: TopicPartition, offset: int) -> None:
        if self._offsets.get(name) != offset:
            self._offsets[name] = offset
            self.is_changed = True

    def lower(self, name: TopicPartition, offset: int) -> None:
        """The log now ends at ``offset``: what comes there next is dirty."""
        if self._offsets.get(name, -1) > offset:
            self.note(name, offset)

    def forget(self, name: TopicPartition) -> None:
        if self._offsets.pop(name, None) is not None:
            self.is_changed = True

    def job(self) -> Callable[[], None]:
        """Take the offsets as they are now; the returned job writes them durably, on any thread. It raises OSError."""
        offsets = dict(sorted(self._offsets.items()))
        self.is_changed = False
        return lambda: checkpoints.write_offsets(self._files, self._directory, checkpoints.CLEANER_OFFSETS, offsets)
