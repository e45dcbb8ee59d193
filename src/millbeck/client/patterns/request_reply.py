"""Request and reply over two topics.

    async with Requester(settings, "quotes", "quote-replies") as requester:
        reply = await requester.ask(b"EUR/USD", timeout_s=5)

    await serve(consumer, producer, answer)        # elsewhere: answer(record) returns the value of the reply

The headers are those of Spring for Apache Kafka (``kafka_correlationId``, ``kafka_replyTopic``,
``kafka_replyPartition``), so either side may be written with it. A requester reads its reply topic without a group,
from its end, and ignores replies to others; it names one partition for its replies, so that several requesters share a
topic without reading everything. A request is answered at least once; a reply after the timeout is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from struct import Struct
from types import TracebackType
from typing import Final, Self

from millbeck.client.config import Value
from millbeck.client.consumer import Consumer
from millbeck.client.errors import ClientClosed, RequestTimeout
from millbeck.client.producer import Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Header, Record

log = logging.getLogger(__name__)

CORRELATION_ID: Final = "kafka_correlationId"
REPLY_TOPIC: Final = "kafka_replyTopic"
REPLY_PARTITION: Final = "kafka_replyPartition"
ERROR: Final = "reply.error"
"""The header of a reply whose request could not be answered: the reason, as text."""

_INT: Final = Struct(">i")

Reply = Record[bytes, bytes]
Answer = Callable[[Record[bytes, bytes]], Awaitable[bytes | None]]


class RequestFailed(ApiError):
    """The other side could not answer the request; the message is its reason."""


class Requester:
    """Sends requests and matches their replies; use it as an async context manager."""

    def __init__(
        self,
        settings: Mapping[str, Value],
        topic: str,
        reply_topic: str,
        *,
        reply_partition: int | None = None,
        environment: Environment | None = None,
    ) -> None:
        """``settings`` are those of both clients that it has; the partition for replies is chosen unless given."""
        self.topic = topic
        self.reply_topic = reply_topic
        self._reply_partition = reply_partition
        self._producer: Producer[bytes, bytes] = Producer(settings, environment=environment)
        self._consumer: Consumer[bytes, bytes] = Consumer(settings, auto_offset_reset="latest", environment=environment)
        self._waiting: dict[bytes, asyncio.Future[Reply]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def start(self) -> None:
        """Begin to read replies; requests sent after it has returned find theirs. The first `ask` calls it too."""
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._start())
        await asyncio.shield(self._starting)

    async def _start(self) -> None:
        view = await self._consumer.topic(self.reply_topic)
        if self._reply_partition is None:
            self._reply_partition = self._producer.environment.randomness.below(view.partition_count)
        partition = TopicPartition(self.reply_topic, self._reply_partition)
        self._consumer.assign([partition])
        # From here on no reply is missed: the position is the end of the partition before the first request.
        await self._consumer.position(partition)
        self._reading = asyncio.ensure_future(self._read())

    async def ask(
        self,
        value: bytes | None,
        key: bytes | None = None,
        *,
        headers: Iterable[Header] = (),
        timeout_s: float = 30.0,
    ) -> Reply:
        """Send a request and return the record with its reply.

        Raises `RequestTimeout` when none has come in time, `RequestFailed` when the other side could not answer.
        """
        correlation_id = self._producer.environment.randomness.uuid()
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout_s):
                await self.start()
                assert self._reply_partition is not None
                self._waiting[correlation_id] = reply
                added: list[Header] = [
                    (CORRELATION_ID, correlation_id),
                    (REPLY_TOPIC, self.reply_topic.encode()),
                    (REPLY_PARTITION, _INT.pack(self._reply_partition)),
                ]
                await self._producer.send(self.topic, value, key=key, headers=[*headers, *added])
                record = await reply
        except TimeoutError as error:
            raise RequestTimeout(f"no reply to a request in {self.topic} after {timeout_s} s") from error
        finally:
            self._waiting.pop(correlation_id, None)
        reason = _header(record, ERROR)
        if reason is not None:
            raise RequestFailed(reason.decode("utf-8", "replace"))
        return record

    async def _read(self) -> None:
        try:
            async for record in self._consumer:
                reply = self._waiting.pop(_header(record, CORRELATION_ID) or b"", None)
                if reply is not None and not reply.done():
                    reply.set_result(record)
        except ApiError as error:
            self._fail(error)

    def _fail(self, error: ApiError) -> None:
        waiting, self._waiting = self._waiting, {}
        for reply in waiting.values():
            if not reply.done():
                reply.set_exception(error)

    async def close(self) -> None:
        """Stop; requests that are not answered fail with `ClientClosed`."""
        self._fail(ClientClosed("the requester was closed"))
        tasks = [task for task in (self._starting, self._reading) if task is not None and not task.done()]
        await self._consumer.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._producer.close()


async def serve(
    consumer: Consumer[bytes, bytes], producer: Producer[bytes, bytes], answer: Answer, *, concurrency: int = 64
) -> None:
    """Answer the requests that ``consumer`` reads, until it is closed or the task is cancelled.

    Up to ``concurrency`` requests are answered at the same time. When ``answer`` raises, the requester gets the error
    as `RequestFailed`. Requests without the headers are ignored.
    """
    room = asyncio.Semaphore(concurrency)

    async def reply_to(record: Record[bytes, bytes]) -> None:
        try:
            await _reply(producer, record, answer)
        except ApiError as error:
            log.warning("a reply could not be sent: %s", error)
        finally:
            room.release()

    async with asyncio.TaskGroup() as tasks:
        async for record in consumer:
            await room.acquire()
            tasks.create_task(reply_to(record))


async def _reply(producer: Producer[bytes, bytes], record: Record[bytes, bytes], answer: Answer) -> None:
    topic, correlation_id = _header(record, REPLY_TOPIC), _header(record, CORRELATION_ID)
    if topic is None or correlation_id is None:
        log.warning(
            "%s-%d at offset %d is no request: it has no %s", record.topic, record.partition, record.offset, REPLY_TOPIC
        )
        return
    number = _header(record, REPLY_PARTITION)
    partition = _INT.unpack(number)[0] if number is not None and len(number) == _INT.size else None
    headers: list[Header] = [(CORRELATION_ID, correlation_id)]
    value: bytes | None = None
    try:
        value = await answer(record)
    except Exception as error:
        log.warning("a request could not be answered: %s", error)
        headers.append((ERROR, f"{type(error).__name__}: {error}".encode()))
    await producer.send(topic.decode("utf-8", "replace"), value, key=record.key, partition=partition, headers=headers)


def _header(record: Record[bytes, bytes], name: str) -> bytes | None:
    return next((value for key, value in record.headers if key == name), None)
