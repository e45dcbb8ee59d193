"""``cleaner-offset-checkpoint``: the first dirty offset of each log in a directory.

It is written after the compacted segments have durably replaced the old ones, so the offset is never too high. After a
crash between the two steps, clean records are compacted once more. A damaged file is ignored.
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
    """The checkpoint of one directory. Changes stay in memory until a `job` writes them; one job runs at a time."""

    def __init__(self, files: Files, directory: str) -> None:
        """Reads the file; raises OSError."""
        self._files = files
        self._directory = directory
        self._offsets: dict[TopicPartition, int] = {}
        self.is_changed = False
        try:
            self._offsets = checkpoints.read_offsets(files, directory, checkpoints.CLEANER_OFFSETS)
        except CheckpointError as error:
            log.error("%s/%s is damaged and ignored: %s", directory, checkpoints.CLEANER_OFFSETS, error)

    def offset_of(self, name: TopicPartition) -> int | None:
        return self._offsets.get(name)

    def note(self, name: TopicPartition, offset: int) -> None:
        if self._offsets.get(name) != offset:
            self._offsets[name] = offset
            self.is_changed = True

    def lower(self, name: TopicPartition, offset: int) -> None:
        """Lower the checkpoint after a truncation: records appended from ``offset`` on are dirty."""
        if self._offsets.get(name, -1) > offset:
            self.note(name, offset)

    def forget(self, name: TopicPartition) -> None:
        if self._offsets.pop(name, None) is not None:
            self.is_changed = True

    def job(self) -> Callable[[], None]:
        """Copy the current offsets; the returned job writes them durably, on any thread. It raises OSError."""
        offsets = dict(sorted(self._offsets.items()))
        self.is_changed = False
        return lambda: checkpoints.write_offsets(self._files, self._directory, checkpoints.CLEANER_OFFSETS, offsets)
