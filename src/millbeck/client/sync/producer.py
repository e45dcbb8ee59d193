"""The synchronous `Producer`.

`send_nowait` appends to a run of records in the caller's thread; the run is handed over to the event loop's thread as
one when it is full, or after ``linger.ms`` (at most 5 ms): waking the other thread for each record would cost more than
sending the record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Self

from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.config import Value
from millbeck.client.errors import BufferFull, ClientClosed
from millbeck.client.metadata import TopicView
from millbeck.client.metrics.registry import MetricName
from millbeck.client.producer import Producer as AsyncProducer
from millbeck.client.producer import ProducerConfig, RecordMetadata
from millbeck.client.producer.accumulator import KEPT_OVERHEAD
from millbeck.client.producer.batch import RecordFuture
from millbeck.client.producer.partitioner import Partitioner
from millbeck.client.producer.record import Headers, Interceptors
from millbeck.client.serialization import Serializer
from millbeck.client.sync.background import EXIT_SECONDS_MAX, Background
from millbeck.host.loop_thread import Delivery
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.records.typevars import K, V

_RUN_RECORDS_MAX: Final = 1000
_RUN_SECONDS_MAX: Final = 0.005

Waiting = tuple[Delivery[RecordMetadata], str, Any, Any, int | None, int | None, Headers]


class Producer(Background, Generic[K, V]):
    """The synchronous producer. It can be used from several threads; the records of each thread keep their order."""

    def __init__(
        self,
        settings: Mapping[str, object] | ProducerConfig | None = None,
        *,
        partitioner: Partitioner | str | None = None,
        key_serializer: Serializer[K] | str | None = None,
        value_serializer: Serializer[V] | str | None = None,
        interceptors: Interceptors = (),
        profile: str | None = None,
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        self._producer: AsyncProducer[K, V] = AsyncProducer(
            settings,
            partitioner=partitioner,
            key_serializer=key_serializer,
            value_serializer=value_serializer,
            interceptors=interceptors,
            profile=profile,
            environment=environment,
            **named,
        )
        super().__init__()
        self.config = self._producer.config
        self._run_s = min(self.config.linger_ms / 1000, _RUN_SECONDS_MAX)
        self._run: list[Waiting] = []
        self._waiting_bytes = 0
        """The size of the records that are not in the producer's buffer yet."""
        self._is_handing_over = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close(0 if kind is not None else None)

    def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> RecordMetadata:
        """Wait for room, then for the acknowledgement; returns where the record was stored, or raises."""
        self.hand_over()
        return self._call(
            lambda: self._producer.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
        )

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> Delivery[RecordMetadata]:
        """Send a record without waiting; `Delivery.result` waits for the result. Raises `BufferFull` if
        ``buffer.memory`` is full."""
        if self._is_closed:
            raise ClientClosed("the producer is closed")
        thread = self._thread or self._loop_thread()
        size_bytes = _size_of(value) + _size_of(key) + KEPT_OVERHEAD
        delivery: Delivery[RecordMetadata] = Delivery()
        with thread.lock:
            limit = self.config.buffer_memory
            if self._waiting_bytes + size_bytes + self._producer.buffered_bytes > limit:
                raise BufferFull(f"buffer.memory ({limit} bytes) is full")
            self._waiting_bytes += size_bytes
            self._run.append((delivery, topic, value, key, partition, timestamp, headers))
            count = len(self._run)
        if count == 1:
            self._loop_thread().call_soon(self._hand_over_later)
        elif count == _RUN_RECORDS_MAX:
            self._loop_thread().call_soon(self._take_run)
        return delivery

    def hand_over(self) -> None:
        """Hand the records of `send_nowait` over to the event loop's thread now."""
        if self._run:
            self._loop_thread().call_soon(self._take_run)

    # in the thread of the event loop

    def _hand_over_later(self) -> None:
        asyncio.get_running_loop().call_later(self._run_s, self._take_run)

    def _take_run(self) -> None:
        if self._run and not self._is_handing_over:
            self._is_handing_over = True
            self._handing = asyncio.ensure_future(self._accept_runs())

    async def _accept_runs(self) -> None:
        """Append the runs one after the other, so that the order is kept; records wait if the buffer is full."""
        assert self._thread is not None
        producer = self._producer
        try:
            while self._run:
                with self._thread.lock:
                    run, self._run = self._run, []
                for delivery, topic, value, key, partition, timestamp, headers in run:
                    try:
                        try:
                            future = producer.send_nowait(
                                topic, value, key, partition=partition, timestamp=timestamp, headers=headers
                            )
                        except BufferFull:
                            future = await producer.enqueue(
                                topic, value, key, partition=partition, timestamp=timestamp, headers=headers
                            )
                    except Exception as error:
                        delivery.complete(None, error)
                    else:
                        future.add_done_callback(partial(_complete, delivery))
                with self._thread.lock:
                    self._waiting_bytes -= sum(_size_of(one[2]) + _size_of(one[3]) + KEPT_OVERHEAD for one in run)
        finally:
            self._is_handing_over = False

    async def _accept_all(self) -> None:
        self._take_run()
        while self._is_handing_over:
            await self._handing

    # the rest, as in the asynchronous producer

    def flush(self, timeout_s: float | None = None) -> None:
        """Send everything now and wait until each record has completed or failed."""

        async def work() -> None:
            await self._accept_all()
            await self._producer.flush(timeout_s)

        self._call(work)

    def init_transactions(self, timeout_s: float | None = None) -> None:
        self._call(lambda: self._producer.init_transactions(timeout_s))

    def begin_transaction(self) -> None:
        self._call_plain(self._producer.begin_transaction)

    def send_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        committer: Committer | None = None,
        timeout_s: float | None = None,
    ) -> None:
        self._call(lambda: self._producer.send_offsets(group_id, offsets, committer=committer, timeout_s=timeout_s))

    def commit_transaction(self, timeout_s: float | None = None) -> None:
        async def work() -> None:
            await self._accept_all()
            await self._producer.commit_transaction(timeout_s)

        self._call(work)

    def abort_transaction(self, timeout_s: float | None = None) -> None:
        async def work() -> None:
            await self._accept_all()
            await self._producer.abort_transaction(timeout_s)

        self._call(work)

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """A transaction as a context manager: committed at its end, aborted on an exception."""
        transaction = self._producer.transaction()
        self._call(transaction.__aenter__)
        try:
            yield self
        except BaseException as error:
            kind, failure = type(error), error

            async def fail() -> None:
                await self._accept_all()
                await transaction.__aexit__(kind, failure, None)

            self._call(fail)
            raise

        async def end() -> None:
            await self._accept_all()
            await transaction.__aexit__(None, None, None)

        self._call(end)

    def send_columns(self, topic: str, table: Any) -> dict[TopicPartition, int]:
        """Send the rows of a `pyarrow` Table or RecordBatch, and wait until they are stored."""
        self.flush()
        return self._call(lambda: self._producer.send_columns(topic, table))

    def topic(self, name: str, *, timeout_s: float | None = None) -> TopicView:
        """A topic's partitions and their leaders."""
        return self._call(lambda: self._producer.topic(name, timeout_s=timeout_s))

    def metrics(self) -> dict[MetricName, float]:
        return self._call_plain(self._producer.metrics)

    def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        return self._call(lambda: self._producer.client_instance_id(timeout_s=timeout_s))

    def _close_at_exit(self) -> None:
        self.close(EXIT_SECONDS_MAX)

    def close(self, timeout_s: float | None = None) -> None:
        """Send remaining records, for up to ``timeout_s``; those not acknowledged by then fail."""

        async def work() -> None:
            await self._accept_all()
            await self._producer.close(timeout_s)

        self._close(work)


def _size_of(part: object) -> int:
    return len(part) if isinstance(part, bytes | str) else 0


def _complete(delivery: Delivery[RecordMetadata], future: RecordFuture) -> None:
    if future.cancelled():
        delivery.complete(None, ClientClosed("the record was cancelled"))
        return
    error = future.exception()
    delivery.complete(None if error is not None else future.result(), error)
