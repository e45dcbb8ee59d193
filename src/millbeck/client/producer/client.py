"""`Producer`: sends records, in order and without duplicates.

    async with Producer(real_environment(), {"bootstrap.servers": "127.0.0.1:9092"}) as producer:
        sent = await producer.send("orders", b"value", key=b"key")    # waits for metadata and for room only
        metadata = await sent                                         # waits for the broker: topic, partition, offset
        await producer.flush()

With a ``transactional.id`` records are sent in transactions, which read_committed consumers see all of or none of:

    await producer.init_transactions()
    producer.begin_transaction()
    await producer.send(...)
    await producer.send_offsets("group", {TopicPartition("in", 0): CommittedOffset(7)})
    await producer.commit_transaction()                               # or abort_transaction

With ``transaction.two.phase.commit.enable`` an external transaction manager decides (KIP-939):

    state = await producer.prepare_transaction()                      # all records stored; str(state) is saved with the
    ...                                                               # decision, in the external system's own commit
    await producer.commit_transaction()
    await successor.init_transactions(keeps_prepared=True)            # after a crash: keep the prepared transaction
    await successor.complete_transaction(state)                       # commit it if it was decided, else abort

`send` returns a future per record that completes with its `RecordMetadata` or an error. Records are collected into
batches per partition (``linger.ms``, ``batch.size``) and sent in the background.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, Self

from millbeck.client.cluster import Cluster
from millbeck.client.config import Value
from millbeck.client.consumer.commits import CommittedOffset, Committer
from millbeck.client.errors import ClientClosed, RequestTimeout, TransactionAborted
from millbeck.client.metadata import TopicView
from millbeck.client.producer.accumulator import RecordAccumulator, record_size_max
from millbeck.client.producer.batch import RecordFuture
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.partitioner import DefaultPartitioner, Partitioner
from millbeck.client.producer.sender import Sender
from millbeck.client.producer.transactions import PreparedState, Stage, Transactions
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidTxnState, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Header

_TURN_SECONDS_MAX: Final = 0.002


class Producer:
    """Create it inside a running event loop; use it as an async context manager, or call `close`."""

    def __init__(
        self,
        environment: Environment,
        settings: Mapping[str, Value] | ProducerConfig,
        *,
        partitioner: Partitioner | None = None,
    ) -> None:
        config = settings if isinstance(settings, ProducerConfig) else ProducerConfig.parse(settings)
        self.config = config
        self.cluster = Cluster(environment, config, in_flight_max=config.max_in_flight, creates_topics=True)
        self._clock = environment.clock
        self._loop = asyncio.get_running_loop()
        self._partitioner = partitioner or DefaultPartitioner(
            environment.randomness,
            batch_size=max(config.batch_size, 1),
            ignores_keys=config.partitioner_ignore_keys,
        )
        self._accumulator = RecordAccumulator(config)
        self._sender = Sender(self.cluster, self._accumulator, config)
        self._transactions = self._sender.transactions
        self._flush_count = 0
        self._yielded_s = self._loop.time()
        self._is_closed = False
        self.cluster.start_upkeep()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(0 if kind is not None else None)

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Iterable[Header] = (),
    ) -> RecordFuture:
        """Append a record to a batch. Raises errors known at once: no such topic, too large, no memory in time, closed.

        If it is cancelled, the record was not appended.
        """
        now_s = self._loop.time()
        if now_s - self._yielded_s > _TURN_SECONDS_MAX:
            # Yield, so that batches are sent even if the program does nothing but call send().
            await asyncio.sleep(0)
            self._yielded_s = self._loop.time()
        held = tuple(headers)
        size_bytes = record_size_max(key, value, held)
        self._accumulator.check_size(size_bytes)
        if self._transactions is not None:
            self._transactions.check_open()
        view = self.cluster.metadata.topics.get(topic)
        if view is None or self._is_closed or not self._accumulator.try_reserve(size_bytes):
            view = await self._wait_for_room(topic, size_bytes)
        return self._append(view, topic, value, key, partition, timestamp, held, size_bytes)

    def send_nowait(
        self,
        topic: str,
        value: bytes | None = None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Iterable[Header] = (),
    ) -> RecordFuture | None:
        """Like `send`, but returns None instead of waiting for metadata or memory."""
        held = tuple(headers)
        size_bytes = record_size_max(key, value, held)
        self._accumulator.check_size(size_bytes)
        if self._transactions is not None:
            self._transactions.check_open()
        view = self.cluster.metadata.topics.get(topic)
        if self._is_closed:
            raise ClientClosed("the producer is closed")
        if view is None or not self._accumulator.try_reserve(size_bytes):
            return None
        return self._append(view, topic, value, key, partition, timestamp, held, size_bytes)

    async def _wait_for_room(self, topic: str, size_bytes: int) -> TopicView:
        if self._is_closed:
            raise ClientClosed("the producer is closed")
        end_s = self._loop.time() + self.config.max_block_ms / 1000
        view = await self.cluster.topic(topic, timeout_s=self.config.max_block_ms / 1000)
        if not self._accumulator.try_reserve(size_bytes):
            # Send all batches now: only completed batches free memory.
            reserving = self._accumulator.reserve(size_bytes, max(0.0, end_s - self._loop.time()))
            self._sender.wake()
            await reserving
        if self._is_closed:
            self._accumulator.release(size_bytes)
            raise ClientClosed("the producer was closed while send() waited")
        return view

    def _append(
        self,
        view: TopicView,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp: int | None,
        headers: tuple[Header, ...],
        size_bytes: int,
    ) -> RecordFuture:
        if partition is None:
            partition = self._partitioner.partition(view, key, size_bytes)
        elif partition not in view.partitions:
            self._accumulator.release(size_bytes)
            raise UnknownTopicOrPartition(
                f"topic {topic} has {view.partition_count} partitions, no partition {partition}"
            )
        future: RecordFuture = self._loop.create_future()
        is_news = self._accumulator.append(
            TopicPartition(topic, partition),
            self._clock.wall_ms() if timestamp is None else timestamp,
            key,
            value,
            headers,
            future,
            size_bytes,
            self._loop.time(),
        )
        if is_news:
            self._sender.wake()
        return future

    def partitions_without_leader(self) -> list[TopicPartition]:
        """The partitions with records to send that have no leader now. The others are written meanwhile."""
        return self.cluster.metadata.without_leader(self._accumulator.queues)

    async def flush(self, timeout_s: float | None = None) -> None:
        """Send all batches now and wait until each record appended so far has completed or failed.

        Raises `RequestTimeout` after ``timeout_s``.
        """
        waiting: list[asyncio.Future[None]] = []
        for batch in self._accumulator.batches():
            if batch.is_over:
                # Expired: its records have failed already, and it stays in flight only until its response arrives.
                continue
            batch.is_closed = True
            if batch.done is None:
                batch.done = self._loop.create_future()
            waiting.append(batch.done)
        if not waiting:
            return
        self._begin_flushing()
        try:
            _, pending = await asyncio.wait(waiting, timeout=timeout_s)
        finally:
            self._end_flushing()
        if pending:
            raise RequestTimeout(f"{len(pending)} batches were not acknowledged in {timeout_s} s")

    # transactions

    @property
    def transactions(self) -> Transactions:
        if self._transactions is None:
            raise InvalidTxnState("the producer has no transactional.id")
        return self._transactions

    async def init_transactions(self, timeout_s: float | None = None, *, keeps_prepared: bool = False) -> None:
        """Acquire the producer id and fence older producers; call it once, before the first transaction.

        With ``keeps_prepared`` an open transaction is not aborted: `complete_transaction` ends it."""
        await self.transactions.init(self._block_s(timeout_s), keeps_prepared=keeps_prepared)

    def begin_transaction(self) -> None:
        self.transactions.begin()

    async def send_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        committer: Committer | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Commit a group's offsets as part of the transaction; ``committer`` is the member that consumed them."""
        await self.transactions.add_offsets(group_id, committer or Committer(), offsets, self._block_s(timeout_s))

    async def commit_transaction(self, timeout_s: float | None = None) -> None:
        """Raises if a record of the transaction was not stored: then it can only be aborted."""
        await self.flush()
        await self.transactions.end(is_committed=True, timeout_s=self._block_s(timeout_s))

    async def prepare_transaction(self) -> PreparedState:
        """Store all records of the transaction; after that it can only be committed or aborted."""
        await self.flush()
        return self.transactions.prepare()

    async def complete_transaction(self, decided: PreparedState, timeout_s: float | None = None) -> None:
        """Commit the prepared transaction if ``decided`` names it, else abort it. No effect if none is prepared."""
        transactions = self.transactions
        if transactions.stage is Stage.PREPARED:
            is_committed = transactions.prepared == decided
            await transactions.end(is_committed=is_committed, timeout_s=self._block_s(timeout_s))
        elif transactions.stage is not Stage.READY:
            raise InvalidTxnState(f"cannot complete: the producer's transaction is {transactions.stage.value}")

    async def abort_transaction(self, timeout_s: float | None = None) -> None:
        """Abort the transaction; records not sent yet are dropped."""
        self.transactions.failed(TransactionAborted("the transaction was aborted"))
        self._sender.fail_all(TransactionAborted("the transaction was aborted"))
        await self._sender.drain()
        await self.transactions.end(is_committed=False, timeout_s=self._block_s(timeout_s))

    def _block_s(self, timeout_s: float | None) -> float:
        return self.config.max_block_ms / 1000 if timeout_s is None else timeout_s

    def _begin_flushing(self) -> None:
        self._flush_count += 1
        self._accumulator.is_flushing = True
        self._sender.wake()

    def _end_flushing(self) -> None:
        self._flush_count -= 1
        self._accumulator.is_flushing = self._flush_count > 0

    async def close(self, timeout_s: float | None = None) -> None:
        """Send remaining records, for up to ``timeout_s``; unacknowledged records then fail with `ClientClosed`."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if timeout_s is None or timeout_s > 0:
                await self.flush(timeout_s)
        except RequestTimeout:
            pass
        finally:
            self._sender.close()
            await self.cluster.close()
