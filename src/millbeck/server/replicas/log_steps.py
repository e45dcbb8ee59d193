"""Log operations in several steps with a sync between them: retention, truncation and closing.

The event loop never blocks on a sync. `storage.retention` and `storage.truncation` explain the order of the steps. Each
function runs on the event loop and awaits its jobs on threads. The log may change during an await, so the next step
always reads its current state.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import retention
from millbeck.storage.log import Log
from millbeck.storage.retention import FileDeletion

logger = logging.getLogger(__name__)

T = TypeVar("T")

CLOSED_AT_ONCE_MAX: Final = 32
"""The maximum number of logs closed concurrently: a disk handles parallel syncs better than sequential ones. The thread
pool is smaller than this."""
FLUSH_POLL_SECONDS: Final = 0.001
"""The poll interval while waiting for a flush that was already running; at most one flush of a log runs at a time."""


class RunInThread(Protocol):
    async def __call__(self, job: Callable[[], T], /) -> T:
        """Run a job off the loop (`Broker.in_thread`)."""


Flush = Callable[[], Awaitable[None]]
"""Flushes the log up to its current end on a thread; a failure takes the log offline."""


async def detach_old_segments(log: Log, flush: Flush, *, now_ms: int, high_watermark: int) -> bool:
    """Detach the segments that retention deletes from the log; True when there were any.

    Once the new log start offset is in the directory's checkpoints, `retention.rename_detached` renames their files for
    deletion. Raises `KafkaStorageError`, OSError.
    """
    offset = log.retention_target(now_ms, high_watermark)
    if retention.needs_flush_before(log, offset):
        await flush()
    return retention.detach(log, offset)


async def truncate(
    log: Log,
    offset: int,
    in_thread: RunInThread,
    flush: Flush,
    *,
    starts_over: bool = False,
    is_wanted: Callable[[], bool] = lambda: True,
) -> list[FileDeletion]:
    """Remove every batch whose last offset is at or after ``offset``, or all batches; durable when this returns.

    Nothing may be appended to the log meanwhile. ``is_wanted`` is checked again just before the truncation. Raises
    `KafkaStorageError`, OSError.
    """
    lowest = 0 if starts_over else offset
    # Repeat in case another task wrote the checkpoints meanwhile.
    while (job := log.lowering_job(lowest)) is not None:
        await in_thread(job)
    while log.swap is not None and (job := log.swap.rollback_job()) is not None:
        await in_thread(job)
    if not is_wanted():
        return []
    removals = log.start_over_at(offset) if starts_over else log.cut_to(offset)
    while log.must_settle:
        await flush()
        if log.offline_reason is not None:
            raise log.offline_error()
        if log.must_settle and not log.durability.is_running:
            raise KafkaStorageError(f"{log.topic_partition} is truncated to {offset}, but that could not be synced")
        await asyncio.sleep(FLUSH_POLL_SECONDS if log.must_settle else 0)
    return removals


async def sync_for_closing(logs: Iterable[Log], in_thread: RunInThread) -> None:
    """Sync the logs that need it before they can be closed, several concurrently. They accept no more appends."""
    left = iter(logs)
    await asyncio.gather(*(_sync_in_turn(left, in_thread) for _ in range(CLOSED_AT_ONCE_MAX)))


async def _sync_in_turn(left: Iterator[Log], in_thread: RunInThread) -> None:
    for log in left:
        try:
            job = log.closing_job()
        except OSError as error:
            logger.error("%s is not closed cleanly: %s", log.topic_partition, error)
            continue
        if job is not None:
            log.finish_flush(job, await in_thread(job.run))
        else:
            await asyncio.sleep(0)
