"""`Producer`: sends records, in order and without duplicates.

    async with Producer({"bootstrap.servers": "127.0.0.1:9092"}) as producer:
        stored = await producer.send("orders", b"value", key=b"key")     # acknowledged: topic, partition, offset
        future = producer.send_nowait("orders", b"value")                # at once; raises BufferFull
        await producer.flush()

With a ``transactional.id`` records are sent in transactions, of which read_committed consumers see either all records
or none:

    async with producer.transaction() as transaction:                    # committed at its end, aborted on an exception
        await transaction.send("out", b"value")
        await transaction.send_offsets(consumer)

`init_transactions`, `begin_transaction`, `commit_transaction` and `abort_transaction` are the single steps. With
``transaction.two.phase.commit.enable`` an external transaction manager decides (KIP-939):

    state = await producer.prepare_transaction()                      # all records stored; str(state) is saved with the
    ...                                                               # decision, in the external system's own commit
    await producer.commit_transaction()
    await successor.init_transactions(keeps_prepared=True)            # after a crash: keep the prepared transaction
    await successor.complete_transaction(state)                       # commit it if it was decided, else abort

Records are collected into batches per partition (``linger.ms``, ``batch.size``) and sent in the background. If `send`
is cancelled, its record was either not accepted or is still delivered: accepted records are never lost or duplicated.
"""

from __future__ import annotations

import asyncio
import logging
from asyncio import _get_running_loop
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Generic, Self

from millbeck.client.cluster import Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.config import Value
from millbeck.client.errors import BufferFull, ClientClosed, RequestTimeout, TransactionAborted
from millbeck.client.lifecycle import LoopBound, merged
from millbeck.client.metadata import TopicView
from millbeck.client.metrics.registry import MetricName
from millbeck.client.producer.accumulator import RecordAccumulator, record_size_max
from millbeck.client.producer.batch import RecordFuture, RecordMetadata
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.held import HeldRecords
from millbeck.client.producer.partitioner import DefaultPartitioner, Partitioner
from millbeck.client.producer.profiles import Profile, profiled
from millbeck.client.producer.record import EncodedRecord, Headers, Interceptors, ProducerRecord, checked
from millbeck.client.producer.sender import Sender
from millbeck.client.producer.transaction import Transaction
from millbeck.client.producer.transactions import PreparedState, Stage, Transactions
from millbeck.client.serialization import Serializer, given, serialized
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidRequest, InvalidTxnState, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition, uuid_text
from millbeck.records.record import Header
from millbeck.records.typevars import K, V

log = logging.getLogger(__name__)

_TURN_SECONDS_MAX: Final = 0.002


class Producer(LoopBound, Generic[K, V]):
    """The producer. It is started by its first call; use it as an async context manager, or call `close`."""

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
        """Settings under Kafka's names, or as keyword arguments: ``linger_ms=5`` is ``linger.ms``.

        Serializers and the partitioner are objects, or names as in the settings.
        ``profile`` (low-latency, throughput or durable) has values for settings that are not given (`profiles`).
        """
        super().__init__(environment)
        self.profile: Profile | None = None
        if isinstance(settings, ProducerConfig):
            config = settings
        else:
            chosen = merged(settings, named)
            if profile is not None:
                chosen, self.profile = profiled(profile, chosen)
            config = ProducerConfig.parse(chosen)
        if isinstance(partitioner, str):
            config, partitioner = config.replace(partitioner_class=partitioner), None
        self.config = config
        self._given_partitioner = partitioner
        key, value = (
            given(setting, serde, "Serializer") or config.serializer(setting)
            for setting, serde in (("key.serializer", key_serializer), ("value.serializer", value_serializer))
        )
        self._key_serializer: Serializer[Any] | None = key
        self._value_serializer: Serializer[Any] | None = value
        self._interceptors = (*interceptors, *config.interceptors())
        self._is_plain = not (self._interceptors or self._key_serializer or self._value_serializer)
        """Whether records are sent without conversion: there are no serializers and no interceptors."""
        self._accumulator = RecordAccumulator(config)
        self._flush_count = 0
        self._is_closed = False
        self._size_bytes_max = -1
        """The largest record that `send_nowait` takes without `_check`; -1 for a producer that is closed or has
        transactions."""

    def _start(self) -> None:
        config = self.config
        self._cluster = Cluster(
            self.environment, config, in_flight_max=config.max_in_flight, creates_topics=True, kind="producer"
        )
        self._clock = self.environment.clock
        self._sender = Sender(self._cluster, self._accumulator, config)
        self._partitioner = self._given_partitioner or config.partitioner(self.environment.randomness, self._sender)
        self._transactions = self._sender.transactions
        self._held = HeldRecords(self._find_topic, self._append, self._accumulator.drop)
        self._yielded_s = self._loop.time()
        self._topics = self._cluster.metadata.topics
        self._held_topics = self._held.by_topic
        self._used_s: dict[str, float] = {}
        """The time of the last batch of each topic."""
        self._cluster.may_forget = self._is_idle
        self._cluster.on_abandoned = self._warn_of_unsent
        if self._transactions is None:
            self._size_bytes_max = self._accumulator.size_bytes_max
        self._cluster.start_upkeep()

    @property
    def cluster(self) -> Cluster:
        self._enter()
        return self._cluster

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close(0 if kind is not None else None)

    # sending

    async def send(
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
        accepted = await self.enqueue(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
        return await accepted

    async def enqueue(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> RecordFuture:
        """Wait for metadata and for room in ``buffer.memory`` only; returns the future of the acknowledgement.

        Raises errors that are known at once: the topic does not exist, the record is too large, no memory became free
        in time, the producer is closed.
        """
        self._enter()
        now_s = self._loop.time()
        if now_s - self._yielded_s > _TURN_SECONDS_MAX:
            # Yield, so that batches are sent even if the program does nothing but send.
            await asyncio.sleep(0)
            self._yielded_s = self._loop.time()
        record = self._encoded(topic, value, key, partition, timestamp, headers)
        size_bytes = self._checked_size(record)
        if not self._accumulator.try_reserve(size_bytes):
            await self._wait_for_room(size_bytes)
        future: RecordFuture = self._new_future()
        view = self._topics.get(record.topic)
        if view is None or record.topic in self._held:
            self._check_topic(record.topic, size_bytes)
            arrival = self._held.hold(record, size_bytes, future, self._cluster.spawn)
            try:
                await asyncio.shield(arrival)
            finally:
                if future.done() and not future.cancelled() and (error := future.exception()) is not None:
                    raise error
        else:
            self._append(view, record, size_bytes, future)
        return future

    def send_nowait(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> RecordFuture:
        """The future of the acknowledgement, at once; raises `BufferFull` when there is no room.

        Records of a topic that is not known yet wait for its metadata, in order.
        """
        if _get_running_loop() is not self._bound_to:
            self._enter()
        collected: tuple[Header, ...] = ()
        if headers or timestamp is not None or partition is not None:
            collected = checked(partition, timestamp, headers)
        if not self._is_plain:
            topic, value, key, partition, timestamp, collected = self._encoded(  # type: ignore[assignment]
                topic, value, key, partition, timestamp, collected
            )
        size_bytes = record_size_max(key, value, collected)  # type: ignore[arg-type]
        if size_bytes > self._size_bytes_max:
            self._check(size_bytes)
        if not self._accumulator.try_reserve(size_bytes):
            self._sender.wake()
            self._sender.metrics.exhausted.add(1, self._loop.time())
            raise BufferFull(f"buffer.memory ({self.config.buffer_memory} bytes) is full")
        future: RecordFuture = self._new_future() if self._interceptors else self._loop.create_future()
        view = self._topics.get(topic)
        if view is None or topic in self._held_topics:
            self._check_topic(topic, size_bytes)
            record = EncodedRecord(topic, value, key, partition, timestamp, collected)  # type: ignore[arg-type]
            self._held.hold(record, size_bytes, future, self._cluster.spawn)
            return future
        # As `_append`, without a call for each record.
        if partition is None:
            partition = self._chosen(view, key, size_bytes)
        elif partition not in view.partitions:
            self._accumulator.drop(size_bytes)
            raise _no_partition(view, partition)
        is_news = self._accumulator.append(
            (topic, partition),
            self._clock.wall_ms() if timestamp is None else timestamp,
            key,  # type: ignore[arg-type]
            value,  # type: ignore[arg-type]
            collected,
            future,
            size_bytes,
            self._loop.time,
        )
        if is_news:
            self._used_s[topic] = self._loop.time()
            self._sender.wake()
        return future

    def _check_topic(self, topic: object, size_bytes: int) -> None:
        """Raise TypeError for what cannot be the name of a topic; the record's memory is released."""
        if not isinstance(topic, str):
            self._accumulator.drop(size_bytes)
            raise TypeError(f"the name of a topic is str, not {type(topic).__name__}")

    def _chosen(self, view: TopicView, key: Any, size_bytes: int) -> int:
        """The partitioner's choice; where it fails, the record's memory is released."""
        try:
            partition = self._partitioner.partition(view, key, size_bytes)
            if partition not in view.partitions:
                raise _no_partition(view, partition)
        except BaseException:
            self._accumulator.drop(size_bytes)
            raise
        return partition

    def _encoded(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp: int | None,
        headers: Headers,
    ) -> EncodedRecord:
        pairs = checked(partition, timestamp, headers)
        if self._is_plain:
            return EncodedRecord(topic, value, key, partition, timestamp, pairs)
        record: ProducerRecord[Any, Any] = ProducerRecord(topic, value, key, partition, timestamp, pairs)
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception:
                log.exception("an interceptor failed; the record is sent as it was")
        topic, value, key, partition, timestamp, held = record
        collected = list(held)
        if self._key_serializer is not None:
            key = serialized(self._key_serializer, "key", topic, key, collected)
        if self._value_serializer is not None:
            value = serialized(self._value_serializer, "value", topic, value, collected)
        return EncodedRecord(topic, value, key, partition, timestamp, tuple(collected))

    def _checked_size(self, record: EncodedRecord) -> int:
        size_bytes = record_size_max(record.key, record.value, record.headers)
        self._check(size_bytes)
        return size_bytes

    def _check(self, size_bytes: int) -> None:
        """Raise if a record of this size cannot be sent, now or ever."""
        if self._is_closed:
            raise ClientClosed("the producer is closed")
        self._accumulator.check_size(size_bytes)
        if self._transactions is not None:
            self._transactions.check_open()

    def _new_future(self) -> RecordFuture:
        future: RecordFuture = self._loop.create_future()
        if self._interceptors:
            future.add_done_callback(self._notify_interceptors)
        return future

    def _notify_interceptors(self, future: RecordFuture) -> None:
        error = None if future.cancelled() else future.exception()
        metadata = None if future.cancelled() or error is not None else future.result()
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception:
                log.exception("an interceptor failed")

    async def _wait_for_room(self, size_bytes: int) -> None:
        # Send all batches now: only completed batches free memory.
        reserving = self._accumulator.reserve(size_bytes, self.config.max_block_ms / 1000)
        self._sender.wake()
        await reserving
        if self._is_closed:
            self._accumulator.drop(size_bytes)
            raise ClientClosed("the producer was closed while send() waited")

    async def _find_topic(self, topic: str) -> TopicView:
        with self._sender.metrics.timed("metadata-wait"):
            return await self._cluster.topic(topic, timeout_s=self.config.max_block_ms / 1000)

    def _append(self, view: TopicView, record: EncodedRecord, size_bytes: int, future: RecordFuture) -> None:
        topic, value, key, partition, timestamp, headers = record
        if partition is None:
            partition = self._chosen(view, key, size_bytes)
        elif partition not in view.partitions:
            self._accumulator.drop(size_bytes)
            raise _no_partition(view, partition)
        is_news = self._accumulator.append(
            (topic, partition),
            self._clock.wall_ms() if timestamp is None else timestamp,
            key,
            value,
            headers,
            future,
            size_bytes,
            self._loop.time,
        )
        if is_news:
            self._used_s[topic] = self._loop.time()
            self._sender.wake()

    def _warn_of_unsent(self) -> None:
        count = sum(batch.record_count for batch in self._accumulator.batches() if not batch.is_over)
        count += sum(map(len, self._held_topics.values()))
        if count:
            log.warning(
                "the event loop ends before %d records were acknowledged: use `async with`, or close() the producer",
                count,
            )

    def _is_idle(self, topic: str) -> bool:
        """Whether nothing was sent to a topic for ``metadata.max.idle.ms``: then its metadata is forgotten."""
        idle_s = self._loop.time() - self._used_s.get(topic, self._loop.time())
        if idle_s * 1000 < self.config.metadata_max_idle_ms or topic in self._held_topics:
            return False
        if any(partition.topic == topic for partition in self._accumulator.queues):
            return False
        del self._used_s[topic]
        return True

    async def send_columns(self, topic: str, table: Any) -> dict[TopicPartition, int]:
        """Send the rows of a `pyarrow` Table or RecordBatch, and wait until they are stored; needs millbeck[columns].

        Columns: ``value`` and ``key`` (binary or string), ``headers`` (a list of key and value), ``partition``. Returns
        the number of records by partition. Raises the error of the first batch that was not stored; `UnsuitableColumns`
        for other columns.
        """
        from millbeck.client.producer.columns import ColumnBatch, encoded

        self._enter()
        if not self._is_plain:
            raise InvalidRequest("send_columns takes bytes: serializers and interceptors have no effect on columns")
        if self._given_partitioner is not None or not isinstance(self._partitioner, DefaultPartitioner):
            raise InvalidRequest("send_columns places rows by their key, as the default partitioner does")
        arrivals = self._held.arrivals()
        if arrivals:
            await asyncio.wait(arrivals)
        view = await self._find_topic(topic)
        keyless = self._partitioner.partition(view, None, self.config.batch_size)
        accumulator = self._accumulator
        counts: dict[TopicPartition, int] = {}
        waited: list[RecordFuture] = []
        for rows in encoded(table, view.partition_count, keyless, max(self.config.batch_size, 1)):
            if self._is_closed:
                raise ClientClosed("the producer is closed")
            if self._transactions is not None:
                self._transactions.check_open()
            accumulator.check_size(len(rows.payload))
            if not accumulator.try_reserve(len(rows.payload)):
                await self._wait_for_room(len(rows.payload))
            batch = ColumnBatch(
                topic, rows, self._clock.wall_ms(), accumulator.codec, accumulator.level, self._loop.time()
            )
            accumulator.add(batch, len(rows.payload))
            self._used_s[topic] = self._loop.time()
            self._sender.wake()
            waited.append(batch.futures[0])
            counts[batch.partition] = counts.get(batch.partition, 0) + rows.record_count
        for outcome in await asyncio.gather(*waited, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
        return counts

    async def topic(self, name: str, *, timeout_s: float | None = None) -> TopicView:
        """A topic's partitions and their leaders."""
        self._enter()
        return await self._cluster.topic(name, timeout_s=self._block_s(timeout_s))

    def metrics(self) -> dict[MetricName, float]:
        """The values of all metrics now, under the names of Kafka's Java clients."""
        return self.cluster.metrics.read()

    async def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        """The id under which brokers collect this client's metrics (KIP-714); raises `UnsupportedByBroker` if they do
        not."""
        return uuid_text(await self.cluster.client_instance_id(self._block_s(timeout_s)))

    @property
    def buffered_bytes(self) -> int:
        """The bytes of ``buffer.memory`` used by records that are not acknowledged yet."""
        return self._accumulator.used_bytes

    def partitions_without_leader(self) -> list[TopicPartition]:
        """The partitions with records to send that have no leader at the moment. The others are still written."""
        self._enter()
        return self.cluster.metadata.without_leader(self._accumulator.queues)

    async def flush(self, timeout_s: float | None = None) -> None:
        """Send all batches now and wait until each record appended so far has completed or failed.

        Raises `RequestTimeout` after ``timeout_s``.
        """
        self._enter()
        with self._sender.metrics.timed("flush"):
            await self._flush(timeout_s)

    async def _flush(self, timeout_s: float | None) -> None:
        arrivals = self._held.arrivals()
        if arrivals:
            began_s = self._loop.time()
            _, late = await asyncio.wait(arrivals, timeout=timeout_s)
            if late:
                raise RequestTimeout(f"the metadata of {len(late)} topics did not arrive in {timeout_s} s")
            timeout_s = None if timeout_s is None else max(0.0, timeout_s - (self._loop.time() - began_s))
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
        """The state of the producer's transactions."""
        self._enter()
        if self._transactions is None:
            raise InvalidTxnState("the producer has no transactional.id")
        return self._transactions

    def transaction(self) -> Transaction[K, V]:
        """A transaction as an async context manager; the first one calls `init_transactions`."""
        return Transaction(self)

    async def init_transactions(self, timeout_s: float | None = None, *, keeps_prepared: bool = False) -> None:
        """Acquire the producer id and fence older producers; call it once, before the first transaction.

        With ``keeps_prepared`` an open transaction is not aborted: `complete_transaction` ends it."""
        transactions = self.transactions
        with self._sender.metrics.timed("txn-init"):
            await transactions.init(self._block_s(timeout_s), keeps_prepared=keeps_prepared)

    def begin_transaction(self) -> None:
        transactions = self.transactions
        with self._sender.metrics.timed("txn-begin"):
            transactions.begin()

    async def send_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        committer: Committer | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Commit a group's offsets as part of the transaction; ``committer`` is the member that consumed them."""
        transactions = self.transactions
        with self._sender.metrics.timed("txn-send-offsets"):
            await transactions.add_offsets(group_id, committer or Committer(), offsets, self._block_s(timeout_s))

    async def commit_transaction(self, timeout_s: float | None = None) -> None:
        """Commit the transaction. Raises if one of its records was not stored: then it can only be aborted."""
        transactions = self.transactions
        with self._sender.metrics.timed("txn-commit"):
            await self.flush()
            await transactions.end(is_committed=True, timeout_s=self._block_s(timeout_s))

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
        transactions = self.transactions
        with self._sender.metrics.timed("txn-abort"):
            transactions.failed(TransactionAborted("the transaction was aborted"))
            self._held.fail_all(TransactionAborted("the transaction was aborted"))
            self._sender.fail_all(TransactionAborted("the transaction was aborted"))
            await self._sender.drain()
            await transactions.end(is_committed=False, timeout_s=self._block_s(timeout_s))

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
        if not self.is_started:
            self._is_closed = True
            return
        self._enter()
        self._is_closed = True
        self._size_bytes_max = -1
        try:
            if timeout_s is None or timeout_s > 0:
                await self.flush(timeout_s)
        except RequestTimeout:
            pass
        finally:
            self._held.fail_all(ClientClosed("the producer was closed before the record was sent"))
            self._sender.close()
            await self.cluster.close()


def _no_partition(view: TopicView, partition: int) -> UnknownTopicOrPartition:
    return UnknownTopicOrPartition(f"topic {view.name} has {view.partition_count} partitions, no partition {partition}")
