"""The recovery-point and log-start checkpoints of a log directory: what is on disk, and how it changes.

They are written from threads (every minute) and from the loop (before a log is cut or its name is used anew), so writes
are put in order here: each has a number when its content is taken, and an older content never replaces a newer one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from queue import SimpleQueue

from millbeck.kernel.environment import Files
from millbeck.kernel.ids import TopicPartition
from millbeck.storage import checkpoints
from millbeck.storage.checkpoints import CheckpointError

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


class CheckpointWriter:
    __slots__ = (
        "_directory",
        "_files",
        "_pending",
        "_taken",
        "_token",
        "_written",
        "is_damaged",
        "log_start_offsets",
        "recovery_points",
    )

    def __init__(self, files: Files, directory: str) -> None:
        """Read what is there. A damaged file counts as missing: slow, since every log is then verified, and safe."""
        self._files = files
        self._directory = directory
        self._token: SimpleQueue[None] = SimpleQueue()
        self._token.put(None)
        self._taken = 0
        self._pending: dict[int, tuple[Offsets, Offsets]] = {}
        """What jobs on their way will write, by their numbers."""
        self._written = 0
        self.is_damaged = False
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        """What the file on disk says."""
        self.log_start_offsets = self._read(checkpoints.LOG_START_OFFSETS)

    def may_claim(self, key: TopicPartition, beyond_offset: int) -> bool:
        """Whether the files name an offset above ``beyond_offset`` for a log, or will when a job on its way has run.

        Other logs have jobs on their way all the time: those that claim less are nothing to wait for.
        """
        claims = [(self.recovery_points, self.log_start_offsets), *list(self._pending.values())]
        return any(max(points.get(key, -1), starts.get(key, -1)) > beyond_offset for points, starts in claims)

    def job(self, recovery_points: Offsets, log_start_offsets: Offsets) -> Callable[[], None]:
        """A job that writes this content unless newer content is there when it runs. It raises OSError."""
        self._taken += 1
        number = self._taken
        self._pending[number] = (recovery_points, log_start_offsets)

        def write() -> None:
            # Whoever holds the token writes; a writer on the loop waits for one on a thread at most a sync or two.
            self._token.get()
            try:
                if number > self._written:
                    self._write(recovery_points, log_start_offsets)
                    self._written = number
                    for done in [each for each in list(self._pending) if each <= number]:
                        self._pending.pop(done, None)
            finally:
                self._token.put(None)

        return write

    def _write(self, recovery_points: Offsets, log_start_offsets: Offsets) -> None:
        # Log starts first: with a log start ahead of its recovery point nothing is lost that is wanted.
        checkpoints.write_offsets(self._files, self._directory, checkpoints.LOG_START_OFFSETS, log_start_offsets)
        self.log_start_offsets = log_start_offsets
        checkpoints.write_offsets(self._files, self._directory, checkpoints.RECOVERY_POINTS, recovery_points)
        self.recovery_points = recovery_points

    def _read(self, name: str) -> Offsets:
        try:
            return checkpoints.read_offsets(self._files, self._directory, name)
        except CheckpointError as error:
            logger.error("%s/%s is damaged and not used: %s", self._directory, name, error)
            self.is_damaged = True
            return {}
