"""Read several topics by priority: records of the first topic before those of the second, and so on.

    async for record in by_priority(consumer, ["orders-express", "orders", "orders-bulk"]):
        ...

The consumer is subscribed to these topics, or reads assigned partitions of them. Records of a topic that has to wait
stay in the consumer's fetch buffers, and its partitions are not fetched once those are full (``fetch.max.bytes``,
``max.partition.fetch.bytes``). A commit inside the loop includes the current record, as in ``async for record in
consumer``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Sequence
from functools import partial
from typing import TypeVar

from millbeck.client.consumer import Consumer
from millbeck.client.consumer.record_run import RecordRun
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

K = TypeVar("K")
V = TypeVar("V")


async def by_priority(
    consumer: Consumer[K, V], topics: Sequence[str], *, burst: int = 100, turn: int = 10
) -> AsyncIterator[Record[K, V]]:
    """Yield records, those of earlier topics first; ends when the consumer is closed.

    So that no topic starves: after ``burst`` records of topics before it, a topic gets its turn of up to ``turn``
    records. Topics that are not listed come last.
    """
    if burst < 1 or turn < 1:
        raise ValueError("burst and turn are at least 1")
    levels = list(dict.fromkeys(topics))
    passed = [0] * (len(levels) + 1)
    """For each level, how many records of levels before it were returned since it was last looked at."""
    while True:
        level, run = await _next_run(consumer, levels, passed, burst, turn)
        if run is None:
            return
        for record in run:
            run.current = record
            yield consumer.decoded(run, record)
            for below in range(level + 1, len(passed)):
                passed[below] += 1


async def _next_run(
    consumer: Consumer[K, V], levels: list[str], passed: list[int], burst: int, turn: int
) -> tuple[int, RecordRun | None]:
    """The next records and their level; None when the consumer is closed."""
    # Without it a program that never waits would keep the responses of the other topics from being read.
    await asyncio.sleep(0)
    starved = [level for level in reversed(range(len(passed))) if passed[level] >= burst]
    for level in (*starved, *range(len(passed))):
        passed[level] = 0
        count_max = burst if level == 0 else turn
        run = await consumer.next_run(partial(_is_of, level, levels), count_max, timeout_s=0)
        if run is not None:
            return level, run
    run = await consumer.next_run(None, turn, timeout_s=math.inf)
    return (0, None) if run is None else (_level(run.state.partition, levels), run)


def _is_of(level: int, levels: list[str], partition: TopicPartition) -> bool:
    return _level(partition, levels) == level


def _level(partition: TopicPartition, levels: list[str]) -> int:
    return levels.index(partition.topic) if partition.topic in levels else len(levels)
