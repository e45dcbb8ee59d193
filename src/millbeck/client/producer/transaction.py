"""``async with producer.transaction()``: a block whose records and offsets become visible together, or not at all."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.producer.batch import RecordFuture, RecordMetadata
from millbeck.client.producer.record import Headers
from millbeck.client.producer.transactions import Stage
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.records.typevars import K, V

if TYPE_CHECKING:
    from millbeck.client.consumer.client import Consumer
    from millbeck.client.producer.client import Producer

log = logging.getLogger(__name__)


class Transaction(Generic[K, V]):
    """A transaction that begins with ``async with``, is committed at the end of the block, and is aborted if the block
    raises."""

    def __init__(self, producer: Producer[K, V]) -> None:
        self._producer = producer

    async def __aenter__(self) -> Transaction[K, V]:
        if self._producer.transactions.stage is Stage.NEW:
            await self._producer.init_transactions()
        self._producer.begin_transaction()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            try:
                await self._producer.commit_transaction()
                return
            except ApiError:
                await self._abort()
                raise
        await self._abort()

    async def _abort(self) -> None:
        """Abort if possible; errors of the abort are only logged, so that the caller gets the error of the block."""
        if self._producer.transactions.stage in (Stage.OPEN, Stage.PREPARED, Stage.FAILED):
            try:
                await self._producer.abort_transaction()
            except ApiError as error:
                # The coordinator aborts it after transaction.timeout.ms.
                log.warning("the transaction could not be aborted: %s", error)

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
        """Like `Producer.send`; the record becomes visible with the commit."""
        return await self._producer.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)

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
        """Like `Producer.send_nowait`; the commit waits for the record."""
        return self._producer.send_nowait(topic, value, key, partition=partition, timestamp=timestamp, headers=headers)

    async def send_offsets(
        self,
        consumer: Consumer[Any, Any],
        offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None,
    ) -> None:
        """Commit the positions of ``consumer``, or these offsets, as part of the transaction.

        The consumer's member id and generation are sent with them: if the member was removed from its group, the
        transaction fails.
        """
        group = consumer.group_metadata()
        wanted = consumer.consumed() if offsets is None else _committed(offsets)
        await self._producer.send_offsets(group.group_id, wanted, committer=group.committer)


def _committed(offsets: Mapping[TopicPartition, int | CommittedOffset]) -> dict[TopicPartition, CommittedOffset]:
    return {
        TopicPartition(*partition): CommittedOffset(offset) if isinstance(offset, int) else offset
        for partition, offset in offsets.items()
    }
