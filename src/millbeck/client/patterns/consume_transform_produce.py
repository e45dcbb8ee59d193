"""Consume, transform and produce, exactly once.

    async with (
        Consumer(settings, group_id="totals", isolation_level="read_committed", enable_auto_commit=False) as consumer,
        Producer(settings, transactional_id="totals-1") as producer,
    ):
        consumer.subscribe(["orders"])
        await exactly_once(consumer, producer, lambda record: [ProducerRecord("totals", record.value)])

The records of one poll are one transaction, with their outputs and the group's offsets. When a transaction fails, it is
aborted, the consumer goes back to the records it had read for it, and they are transformed again; so the function must
have no effects outside of the log. Each instance of the program needs a ``transactional.id`` of its own that stays the
same over restarts, so that a restarted instance ends the transaction of its predecessor.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, TypeVar

from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.client.producer.batch import RecordFuture
from millbeck.client.producer.record import ProducerRecord
from millbeck.client.producer.transactions import Stage
from millbeck.kernel.errors import (
    ApiError,
    FencedMemberEpoch,
    IllegalGeneration,
    InvalidConfig,
    InvalidTxnState,
    StaleMemberEpoch,
    TransactionAbortable,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

log = logging.getLogger(__name__)

K = TypeVar("K")
V = TypeVar("V")

Outputs = Iterable[ProducerRecord[Any, Any]]
Transform = Callable[[Record[K, V]], Outputs | Awaitable[Outputs]]

_REPEATED: Final = (FencedMemberEpoch, IllegalGeneration, StaleMemberEpoch, TransactionAbortable, UnknownMemberId)
"""Errors that are not retriable as such, but after which a new transaction can succeed."""


async def exactly_once(
    consumer: Consumer[K, V],
    producer: Producer[Any, Any],
    transform: Transform[K, V],
    *,
    records_max: int | None = None,
) -> None:
    """Run until the task is cancelled; raises the error of ``transform``, and errors that a retry does not help.

    ``transform`` returns the records to send for one record, and may be a coroutine function. ``records_max`` limits
    the records of one transaction, by default to ``max.poll.records``.
    """
    _check(consumer, producer)
    if producer.transactions.stage is Stage.NEW:
        await producer.init_transactions()
    failures = 0
    while True:
        batch = await consumer.poll(max_records=records_max)
        if not batch:
            continue
        try:
            await _transact(consumer, producer, transform, batch)
            failures = 0
        except BaseException as error:
            _go_back(consumer, batch)
            if not _is_passing(error) or producer.transactions.stage is not Stage.READY:
                raise
            failures += 1
            log.warning("a transaction was aborted and is repeated: %s", error)
            await asyncio.sleep(consumer.cluster.backoff.delay_s(failures))


async def _transact(
    consumer: Consumer[K, V],
    producer: Producer[Any, Any],
    transform: Transform[K, V],
    batch: dict[TopicPartition, list[Record[K, V]]],
) -> None:
    async with producer.transaction() as transaction:
        sent: list[RecordFuture] = []
        try:
            for records in batch.values():
                for record in records:
                    outputs = transform(record)
                    found = await outputs if inspect.isawaitable(outputs) else outputs
                    sent.extend([await _enqueued(producer, output) for output in found])
            await producer.flush()
        except InvalidTxnState:
            # The transaction has failed with a record sent before; its error says why.
            _raise_first(sent)
            raise
        _raise_first(sent)
        positions = consumer.consumed()
        await transaction.send_offsets(consumer, {partition: positions[partition] for partition in batch})


def _is_passing(error: BaseException) -> bool:
    """Whether the same records may be stored by another transaction."""
    if not isinstance(error, ApiError) or isinstance(error, UnknownTopicOrPartition):
        return False
    return error.retriable or isinstance(error, _REPEATED)


def _raise_first(sent: list[RecordFuture]) -> None:
    """Raise the error of the first record that was not stored, if there is one."""
    for future in sent:
        if future.done():
            future.result()


async def _enqueued(producer: Producer[Any, Any], output: ProducerRecord[Any, Any]) -> RecordFuture:
    topic, value, key, partition, timestamp, headers = output
    future = await producer.enqueue(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)
    # Its error is raised after the flush; if another one comes first, this one need not be logged.
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


def _go_back(consumer: Consumer[K, V], batch: dict[TopicPartition, list[Record[K, V]]]) -> None:
    assigned = consumer.assignment
    for partition, records in batch.items():
        if partition in assigned:
            consumer.seek(partition, records[0].offset)


def _check(consumer: Consumer[Any, Any], producer: Producer[Any, Any]) -> None:
    if not consumer.config.reads_committed:
        raise InvalidConfig("exactly_once needs isolation.level=read_committed on the consumer")
    if consumer.config.group_id is None:
        raise InvalidConfig("exactly_once needs a group.id on the consumer: the offsets are the group's")
    if consumer.config.enable_auto_commit:
        raise InvalidConfig("exactly_once needs enable.auto.commit=false on the consumer: transactions commit offsets")
    if producer.config.transactional_id is None:
        raise InvalidConfig("exactly_once needs a transactional.id on the producer")
