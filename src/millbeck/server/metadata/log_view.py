"""The raft state machine's view of the metadata log: a storage log that starts at the end of a snapshot."""

from __future__ import annotations

from millbeck.raft.messages import EpochEnd, SnapshotKey
from millbeck.server.metadata.snapshots import MetadataSnapshots
from millbeck.storage.log import Log


class MetadataLogView:
    def __init__(self, log: Log, snapshots: MetadataSnapshots) -> None:
        self._log = log
        self._snapshots = snapshots

    @property
    def start_offset(self) -> int:
        return self._log.log_start_offset

    @property
    def start_epoch(self) -> int:
        return self._snapshots.start_epoch

    @property
    def end_offset(self) -> int:
        return self._log.end_offset

    @property
    def flushed_offset(self) -> int:
        return self._log.flushed_offset

    @property
    def last_epoch(self) -> int:
        if self._log.end_offset == self._log.log_start_offset:
            return self.start_epoch
        return self._log.epochs.latest_epoch

    @property
    def snapshot(self) -> SnapshotKey | None:
        newest = self._snapshots.newest_id
        return None if newest is None else SnapshotKey(newest.end_offset, newest.epoch)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        log = self._log
        earliest = log.epochs.earliest()
        if earliest is None or epoch < earliest[0] or log.end_offset == log.log_start_offset:
            return EpochEnd(self.start_epoch, log.log_start_offset)
        if epoch >= log.epochs.latest_epoch:
            return EpochEnd(log.epochs.latest_epoch, log.end_offset)
        return EpochEnd(*log.end_offset_for_epoch(epoch))
