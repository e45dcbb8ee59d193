"""The recovery-point and log-start-offset checkpoints of a log directory: their content on disk and how it is
rewritten.

They are written from threads (every minute) and from the event loop (before a log is truncated or its name is reused).
Writes are therefore ordered here: each gets a number when its content is taken, and older content never replaces
newer.
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
        """Read both files. A corrupt file counts as missing: every log is then verified, which is slow but safe."""
        self._files = files
        self._directory = directory
        self._token: SimpleQueue[None] = SimpleQueue()
        self._token.put(None)
        self._taken = 0
        self._pending: dict[int, tuple[Offsets, Offsets]] = {}
        """Content of the jobs that have not finished, by number."""
        self._written = 0
        self.is_damaged = False
        self.recovery_points = self._read(checkpoints.RECOVERY_POINTS)
        """The content of the file on disk."""
        self.log_start_offsets = self._read(checkpoints.LOG_START_OFFSETS)

    def may_exceed(self, key: TopicPartition, beyond_offset: int) -> bool:
        """Whether a file has an offset above ``beyond_offset`` for a log, or will have one when a pending job has run.

        Pending jobs for other logs are frequent; a job with a lower offset for this log need not be awaited.
        """
        claims = [(self.recovery_points, self.log_start_offsets), *list(self._pending.values())]
        return any(max(points.get(key, -1), starts.get(key, -1)) > beyond_offset for points, starts in claims)

    def job(self, recovery_points: Offsets, log_start_offsets: Offsets) -> Callable[[], None]:
        """A job that writes this content, unless newer content has been written when it runs. The job raises
        OSError.
        """
        self._taken += 1
        number = self._taken
        self._pending[number] = (recovery_points, log_start_offsets)

        def write() -> None:
            # Only the holder of the token writes; the event loop waits for a thread at most one or two syncs long.
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
        # Log start offsets first: a crash that leaves a log start offset above the recovery point loses no needed
        # record.
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
