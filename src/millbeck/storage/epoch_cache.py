"""The leader epoch cache of one log: the start offset of each epoch, by which replicas find where they diverge.

Entries ascend in both epoch and start offset. An epoch is added when its first batch is written, or when a leader is
elected. ``leader-epoch-checkpoint`` holds them as text. The flush job writes it whenever it has changed, always before
the recovery point passes the data it describes; `recovery` rebuilds the later entries from the batches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

from millbeck.storage.checkpoints import CheckpointError, decode_lines, encode_lines

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEndOffset(NamedTuple):
    """The largest known epoch not above the requested one, and the offset after its last record."""

    leader_epoch: int
    end_offset: int


class LeaderEpochCache:
    __slots__ = ("_epochs", "_start_offsets", "latest_epoch", "version")

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        self.latest_epoch = UNDEFINED_EPOCH
        self.version = 0
        """Increases with every change; shows whether the saved state is current."""
        for epoch, start_offset in entries or []:
            self.assign(epoch, start_offset)

    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._start_offsets, strict=True))

    def assign(self, epoch: int, start_offset: int) -> None:
        """Add ``epoch`` when it is above the latest. Entries with the same or a higher start offset are removed."""
        if epoch <= self.latest_epoch or epoch < 0:
            return
        keep = bisect_left(self._start_offsets, start_offset)
        del self._epochs[keep:], self._start_offsets[keep:]
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        self._changed()

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that begin at or after ``end_offset``."""
        keep = bisect_left(self._start_offsets, end_offset)
        if keep < len(self._epochs):
            del self._epochs[keep:], self._start_offsets[keep:]
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove entries before ``start_offset``; the epoch that contains it now begins there."""
        floor = bisect_right(self._start_offsets, start_offset) - 1
        if floor < 0 or (floor == 0 and self._start_offsets[0] == start_offset):
            return
        del self._epochs[:floor], self._start_offsets[:floor]
        self._start_offsets[0] = start_offset
        self._changed()

    def clear(self) -> None:
        if self._epochs:
            self._epochs.clear()
            self._start_offsets.clear()
            self._changed()

    def epoch_of(self, offset: int) -> int:
        """The epoch of ``offset``, or the latest one when it is not written yet; `UNDEFINED_EPOCH` before the first
        entry.
        """
        index = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[index] if index >= 0 else UNDEFINED_EPOCH

    def earliest(self) -> tuple[int, int] | None:
        return (self._epochs[0], self._start_offsets[0]) if self._epochs else None

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The end offset of ``epoch`` in this log, for OffsetForLeaderEpoch and the divergence check in Fetch.

        The latest epoch ends at the log end offset. An epoch above all known ones is undefined. One below all known
        ones ended where the first known one began, and is returned with the requested epoch.
        """
        if epoch == UNDEFINED_EPOCH or not self._epochs:
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        found = self._epochs[higher - 1] if higher > 0 else epoch
        return EpochEndOffset(found, self._start_offsets[higher])

    def encode(self) -> bytes:
        return encode_lines(f"{epoch} {start}" for epoch, start in zip(self._epochs, self._start_offsets, strict=True))

    def _changed(self) -> None:
        self.latest_epoch = self._epochs[-1] if self._epochs else UNDEFINED_EPOCH
        self.version += 1


def decode_epochs(content: bytes) -> list[tuple[int, int]]:
    """Parse a checkpoint file. Raises `CheckpointError` unless both columns ascend."""
    entries: list[tuple[int, int]] = []
    for epoch_text, start_text in decode_lines(content, 2):
        try:
            entry = (int(epoch_text), int(start_text))
        except ValueError as error:
            raise CheckpointError(f"malformed epoch entry {epoch_text} {start_text}") from error
        if entry[0] < 0 or entry[1] < 0 or (entries and (entry[0] <= entries[-1][0] or entry[1] <= entries[-1][1])):
            raise CheckpointError(f"epoch entry {entry} is not above the one before")
        entries.append(entry)
    return entries
