"""Records of topics whose metadata is not known yet, in the order in which they were sent."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from millbeck.client.errors import TransactionAborted
from millbeck.client.metadata import TopicView
from millbeck.client.producer.batch import RecordFuture
from millbeck.client.producer.record import EncodedRecord
from millbeck.kernel.errors import ApiError

Held = tuple[EncodedRecord, int, RecordFuture]
"""A waiting record, with its size and its future."""


class HeldRecords:
    """Holds records until the metadata of their topic has arrived; it is requested once. Then the records are appended,
    or fail with the topic's error."""

    def __init__(
        self,
        find: Callable[[str], Awaitable[TopicView]],
        append: Callable[[TopicView, EncodedRecord, int, RecordFuture], None],
        drop: Callable[[int], None],
    ) -> None:
        """``append`` takes a record over; ``drop`` releases the memory of one that failed."""
        self._find: Final = find
        self._append: Final = append
        self._drop: Final = drop
        self.by_topic: dict[str, deque[Held]] = {}
        """The records held, by topic; a topic without any is not in it."""
        self._arrivals: dict[str, asyncio.Future[None]] = {}

    def __contains__(self, topic: str) -> bool:
        return topic in self.by_topic

    def hold(
        self, record: EncodedRecord, size_bytes: int, future: RecordFuture, spawn: Callable[..., object]
    ) -> asyncio.Future[None]:
        """Keep a record; returns a future that completes when the records of its topic have been appended."""
        held = self.by_topic.get(record.topic)
        if held is None:
            held = self.by_topic[record.topic] = deque()
            self._arrivals[record.topic] = asyncio.get_running_loop().create_future()
            spawn(self._release(record.topic))
        held.append((record, size_bytes, future))
        return self._arrivals[record.topic]

    async def _release(self, topic: str) -> None:
        try:
            view = await self._find(topic)
        except ApiError as error:
            self._fail(topic, error)
            return
        except BaseException:
            self._arrivals.pop(topic).cancel()
            raise
        held = self.by_topic.pop(topic)
        arrival = self._arrivals.pop(topic)
        for record, size_bytes, future in held:
            try:
                self._append(view, record, size_bytes, future)
            except Exception as error:  # of a partitioner, for instance
                _fail_one(future, error)
        if not arrival.done():
            arrival.set_result(None)

    def _fail(self, topic: str, error: ApiError) -> None:
        arrival = self._arrivals.pop(topic)
        for _, size_bytes, future in self.by_topic.pop(topic):
            self._drop(size_bytes)
            _fail_one(future, error)
        if not arrival.done():
            arrival.set_exception(error)
            # The waiters get the error, and so does every record.
            arrival.exception()

    def fail_all(self, error: ApiError) -> None:
        """Drop all records: their futures fail with ``error``."""
        for topic in list(self.by_topic):
            held = self.by_topic[topic]
            while held:
                _, size_bytes, future = held.popleft()
                self._drop(size_bytes)
                _fail_one(future, error)

    def arrivals(self) -> list[asyncio.Future[None]]:
        """A future for each topic whose metadata is awaited."""
        return list(self._arrivals.values())


def _fail_one(future: RecordFuture, error: Exception) -> None:
    if not future.done():
        future.set_exception(error)
        if isinstance(error, TransactionAborted):
            # After an abort the caller knows the outcome, so an unread exception must not be logged.
            future.exception()
