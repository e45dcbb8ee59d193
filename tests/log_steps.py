"""Steps of a log for tests: retention and truncation at once, without an event loop; and the check of its indexes."""

from __future__ import annotations

from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import retention
from millbeck.storage.log import Log
from millbeck.storage.retention import FileDeletion


def apply_retention(log: Log, now_ms: int, high_watermark: int | None = None) -> list[FileDeletion]:
    """Delete old segments; the returned jobs delete their files."""
    offset = log.retention_target(now_ms, log.end_offset if high_watermark is None else high_watermark)
    if retention.needs_flush_before(log, offset):
        log.flush()
    if not retention.detach(log, offset):
        return []
    job = log.raising_job()
    try:
        if job is not None:
            job()
    except OSError:
        # The disk may be full, and the deletion frees space.
        pass
    return retention.rename_detached(log)


def truncate_to(log: Log, offset: int) -> list[FileDeletion]:
    """Lower the checkpoints, cut the log and flush it."""
    if log.offline_reason is not None:
        raise log.offline_error()
    job = log.lowering_job(offset)
    if job is not None:
        try:
            job()
        except OSError as error:
            raise KafkaStorageError(f"checkpoints for {log.topic_partition} cannot be written: {error}") from error
    removals = log.cut_to(offset)
    log.flush()
    return removals


def check_indexes(log: Log) -> None:
    """Every index entry names a batch, and the largest timestamp is that of one."""
    for segment in log.segments:
        starts = dict(segment.headers())
        for offset, position in segment.offset_index().entries():
            assert starts[position].last_offset == offset
        timestamps = {header.last_offset: header.max_timestamp for header in starts.values()}
        for timestamp, offset in segment.time_index().entries():
            assert timestamps[offset] == timestamp
        assert segment.largest_timestamp() == max(timestamps.values(), default=-1)
