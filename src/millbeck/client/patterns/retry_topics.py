"""Retry topics: a record that cannot be processed now is tried again later, and finally kept in a dead-letter topic.

    retries = RetryTopics("orders", "billing", delays_s=(10, 60, 600))
    await retries.create(admin)
    await retries.run(consumer, producer, handle)

A record for which ``handle`` raises is copied to the first retry topic, ``orders-billing-retry-1``; after the delay it
is handled again, and so on; after the last retry it is copied to ``orders-billing-dlt``. The records behind it are not
held up, so records of one key may change places: where their order matters, handle the error in ``handle``. While a
record is not due, its partition is paused and the consumer stays in the group.

A record is committed after it was handled or its copy was acknowledged, so each is handled at least once. A copy has
key, value and headers of the record and, as headers named in `HEADERS`, where it came from, what failed and when it is
due.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from millbeck.client.admin import Admin
from millbeck.client.admin.results import NewTopic
from millbeck.client.consumer import Consumer
from millbeck.client.consumer.listener import Partitions, RebalanceListener
from millbeck.client.producer import Producer, RecordMetadata
from millbeck.kernel.errors import ApiError, InvalidConfig, TopicAlreadyExists
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Header, Record

log = logging.getLogger(__name__)

Handler = Callable[[Record[bytes, bytes]], Awaitable[None]]

TOPIC: Final = "retry.topic"
PARTITION: Final = "retry.partition"
OFFSET: Final = "retry.offset"
TIMESTAMP: Final = "retry.timestamp"
ATTEMPT: Final = "retry.attempt"
ERROR: Final = "retry.error"
DUE: Final = "retry.due"
HEADERS: Final = (TOPIC, PARTITION, OFFSET, TIMESTAMP, ATTEMPT, ERROR, DUE)
"""The headers of a copy, as text: topic, partition, offset and timestamp of the original record, the number of attempts
that have failed, the error of the last one, and the time in milliseconds from which it may be handled again."""

_ERROR_LENGTH_MAX: Final = 1000
_POLL_SECONDS: Final = 1.0


class RetryTopics:
    def __init__(
        self,
        topic: str,
        group_id: str,
        *,
        delays_s: Sequence[float] = (10.0, 60.0, 600.0),
        permanent: tuple[type[Exception], ...] = (),
    ) -> None:
        """``delays_s`` is the delay before each retry; errors of the classes in ``permanent`` are not retried."""
        if any(delay_s < 0 for delay_s in delays_s):
            raise ValueError("a delay is not negative")
        self.topic = topic
        self.group_id = group_id
        self.delays_s = tuple(delays_s)
        self.permanent = permanent
        self.retry_topics = tuple(f"{topic}-{group_id}-retry-{number}" for number in range(1, len(delays_s) + 1))
        self.dead_letter_topic = f"{topic}-{group_id}-dlt"

    async def create(self, admin: Admin, *, replication_factor: int = -1) -> None:
        """Create the topics that do not exist, with as many partitions as the topic has."""
        described = await admin.describe_topics([self.topic])
        partition_count = len(described.all()[self.topic].partitions)
        names = [*self.retry_topics, self.dead_letter_topic]
        created = await admin.create_topics(
            [
                NewTopic(name=name, partition_count=partition_count, replication_factor=replication_factor)
                for name in names
            ]
        )
        for error in created.failed.values():
            if not isinstance(error, TopicAlreadyExists):
                raise error

    async def failed(
        self, producer: Producer[bytes, bytes], record: Record[bytes, bytes], error: Exception
    ) -> RecordMetadata:
        """Copy a record to its next topic, and wait until the copy is acknowledged."""
        attempt = _number(record, ATTEMPT) + 1
        is_dead = attempt > len(self.delays_s) or isinstance(error, self.permanent)
        topic = self.dead_letter_topic if is_dead else self.retry_topics[attempt - 1]
        now_ms = producer.environment.clock.wall_ms()
        due_ms = now_ms if is_dead else now_ms + round(self.delays_s[attempt - 1] * 1000)
        added = {
            TOPIC: _text(record, TOPIC) or record.topic,
            PARTITION: _text(record, PARTITION) or str(record.partition),
            OFFSET: _text(record, OFFSET) or str(record.offset),
            TIMESTAMP: _text(record, TIMESTAMP) or str(record.timestamp),
            ATTEMPT: str(attempt),
            ERROR: f"{type(error).__name__}: {error}"[:_ERROR_LENGTH_MAX],
            DUE: str(due_ms),
        }
        headers: list[Header] = [header for header in record.headers if header[0] not in HEADERS]
        headers += [(name, text.encode("utf-8", "replace")) for name, text in added.items()]
        level = logging.ERROR if is_dead else logging.WARNING
        log.log(
            level,
            "%s-%d at offset %d goes to %s: %s",
            record.topic,
            record.partition,
            record.offset,
            topic,
            added[ERROR],
        )
        return await producer.send(topic, record.value, key=record.key, headers=headers)

    async def run(self, consumer: Consumer[bytes, bytes], producer: Producer[bytes, bytes], handle: Handler) -> None:
        """Subscribe to the topic and its retry topics, and process until the task is cancelled or the consumer is
        closed.

        Raises errors of consumer and producer; those of ``handle`` send the record to the next topic.
        """
        await _Run(self, consumer, producer, handle).run()


class _Run:
    """The state of one `RetryTopics.run`: what is done but not committed, and which partitions wait until when."""

    def __init__(
        self,
        retries: RetryTopics,
        consumer: Consumer[bytes, bytes],
        producer: Producer[bytes, bytes],
        handle: Handler,
    ) -> None:
        if consumer.config.enable_auto_commit:
            raise InvalidConfig("RetryTopics needs enable.auto.commit=false: it commits each record it has handled")
        if consumer.config.group_id != retries.group_id:
            raise InvalidConfig(
                f"the consumer's group.id is {consumer.config.group_id}, the retry topics are those of group "
                f"{retries.group_id}"
            )
        if not consumer.returns_bytes:
            raise InvalidConfig(
                "RetryTopics needs a consumer without deserializers, so that copies have the same bytes: decode in "
                "the handler"
            )
        self._retries = retries
        self._consumer = consumer
        self._producer = producer
        self._handle = handle
        self._done: dict[TopicPartition, int] = {}
        self._due_ms: dict[TopicPartition, int] = {}

    async def run(self) -> None:
        consumer = self._consumer
        consumer.subscribe([self._retries.topic, *self._retries.retry_topics], listener=_Listener(self))
        try:
            while not consumer.is_closed:
                for partition, records in (await consumer.poll(timeout_s=self._poll_s())).items():
                    await self._process(partition, records)
                self._resume()
                await self._commit()
        finally:
            if not consumer.is_closed:
                await self._commit()

    def _now_ms(self) -> int:
        return self._producer.environment.clock.wall_ms()

    def _poll_s(self) -> float:
        if not self._due_ms:
            return _POLL_SECONDS
        return max(0.0, min(_POLL_SECONDS, (min(self._due_ms.values()) - self._now_ms()) / 1000))

    async def _process(self, partition: TopicPartition, records: list[Record[bytes, bytes]]) -> None:
        for record in records:
            due_ms = self._due_of(record)
            if due_ms > self._now_ms():
                self._due_ms[partition] = due_ms
                self._consumer.pause(partition)
                self._consumer.seek(partition, record.offset)
                return
            try:
                await self._handle(record)
            except asyncio.CancelledError:
                raise
            except Exception as error:
                await self._retries.failed(self._producer, record, error)
            self._done[partition] = record.offset + 1

    def _due_of(self, record: Record[bytes, bytes]) -> int:
        """The time from which a record may be handled; never more than its delay after it was stored."""
        if record.topic not in self._retries.retry_topics:
            return 0
        delay_s = self._retries.delays_s[self._retries.retry_topics.index(record.topic)]
        return min(_number(record, DUE), record.timestamp + round(delay_s * 1000))

    def _resume(self) -> None:
        now_ms = self._now_ms()
        for partition in [each for each, due_ms in self._due_ms.items() if due_ms <= now_ms]:
            del self._due_ms[partition]
            self._consumer.resume(partition)

    async def _commit(self) -> None:
        done, self._done = self._done, {}
        if not done:
            return
        try:
            await self._consumer.commit(done)
        except ApiError as error:
            # The next commit of these partitions includes it; if they are lost, the records are handled again.
            log.warning("commit of group %s failed: %s", self._retries.group_id, error)

    async def release(self, partitions: Partitions) -> None:
        await self._commit()
        self.forget(partitions)

    def forget(self, partitions: Partitions) -> None:
        for partition in partitions:
            self._due_ms.pop(partition, None)
            self._done.pop(partition, None)


class _Listener(RebalanceListener):
    def __init__(self, run: _Run) -> None:
        self._run = run

    def on_revoked(self, partitions: Partitions) -> Awaitable[None]:
        return self._run.release(partitions)

    def on_lost(self, partitions: Partitions) -> None:
        self._run.forget(partitions)


def _text(record: Record[bytes, bytes], name: str) -> str:
    """The last header of this name as text; empty if there is none."""
    found = [value for key, value in record.headers if key == name and value is not None]
    return found[-1].decode("utf-8", "replace") if found else ""


def _number(record: Record[bytes, bytes], name: str) -> int:
    """The number in a header; 0 if there is none."""
    text = _text(record, name)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
