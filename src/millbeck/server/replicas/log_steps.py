"""What a log does in steps, because something must become durable between them: the loop never waits for a sync.

`storage.retention` and `storage.truncation` say why the steps have this order. Each function runs on the loop and gives
way to it while a job is on a thread; whatever happens to the log meanwhile, the next step looks at it as it finds it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final, Protocol, TypeVar

from millbeck.kernel.errors import KafkaStorageError
from millbeck.storage import retention
from millbeck.storage.log import Log
from millbeck.storage.retention import Removal

logger = logging.getLogger(__name__)

T = TypeVar("T")

CLOSED_AT_ONCE_MAX: Final = 32
"""A disk takes the syncs of several logs at once better than one after another; the threads are fewer than this."""
FLUSH_POLL_SECONDS: Final = 0.001
"""Between looks at a flush that was under way before; at most one of a log runs at a time."""


class InThread(Protocol):
    async def __call__(self, job: Callable[[], T], /) -> T:
        """Run a job off the loop (`Broker.in_thread`)."""


Flush = Callable[[], Awaitable[None]]
"""Makes the log durable up to its present end, off the loop; when it cannot, the log tells."""


async def detach_old_segments(log: Log, flush: Flush, *, now_ms: int, high_watermark: int) -> bool:
    """Take segments that retention removes out of the log; whether there were any.

    Once the directory's checkpoints know of the new start, `retention.remove_detached` takes their files away. Raises
    `KafkaStorageError`, OSError.
    """
    offset = log.retention_target(now_ms, high_watermark)
    if retention.must_flush(log, offset):
        await flush()
    return retention.detach(log, offset)


async def truncate(
    log: Log,
    offset: int,
    in_thread: InThread,
    flush: Flush,
    *,
    starts_over: bool = False,
    is_wanted: Callable[[], bool] = lambda: True,
) -> list[Removal]:
    """Drop every batch that reaches to ``offset`` or beyond, or all of them; durable when this returns.

    Nobody may write to the log meanwhile. ``is_wanted`` is asked once more just before. Raises `KafkaStorageError`,
    OSError.
    """
    lowest = 0 if starts_over else offset
    # Once more, should the checkpoints have been written by another meanwhile.
    while (job := log.lowering_job(lowest)) is not None:
        await in_thread(job)
    while log.swap is not None and (job := log.swap.settling_job()) is not None:
        await in_thread(job)
    if not is_wanted():
        return []
    removals = log.start_over_at(offset) if starts_over else log.cut_to(offset)
    while log.must_settle:
        await flush()
        if log.offline_reason is not None:
            raise log.offline_error()
        if log.must_settle and not log.durability.is_running:
            raise KafkaStorageError(f"{log.topic_partition} is cut to {offset}, but that could not be synced")
        await asyncio.sleep(FLUSH_POLL_SECONDS if log.must_settle else 0)
    return removals


async def sync_for_closing(logs: Iterable[Log], in_thread: InThread) -> None:
    """Make durable what keeps logs from being closed at once, some of them at a time. They take no more writes."""
    left = iter(logs)
    await asyncio.gather(*(_sync_in_turn(left, in_thread) for _ in range(CLOSED_AT_ONCE_MAX)))


async def _sync_in_turn(left: Iterator[Log], in_thread: InThread) -> None:
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
