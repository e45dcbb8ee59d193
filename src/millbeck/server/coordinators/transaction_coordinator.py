"""The transaction coordinator of this node: one shard for each partition of ``__transaction_state`` that it leads.

When an operation needs a new producer id, the shard raises `ProducerIdRequired`; it is then repeated with one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.timer import Timers
from millbeck.coordinator.transaction.initialization import ProducerIdRequired
from millbeck.coordinator.transaction.markers import Markers
from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.shard import TransactionShard, TransactionShardOptions
from millbeck.coordinator.transaction.status import TransactionState
from millbeck.kernel.errors import ApiError
from millbeck.kernel.names import TRANSACTION_STATE_TOPIC
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.metadata.features import TRANSACTION_VERSION
from millbeck.replication.partition import Partition
from millbeck.server.coordinators.coordinator import CoordinatorDriver
from millbeck.server.coordinators.producer_ids import ProducerIds
from millbeck.server.coordinators.shard_driver import CoordinatorTopic
from millbeck.server.transactions.marker_sender import MarkerSender

if TYPE_CHECKING:
    from millbeck.server.transactions.context import TransactionContext

T = TypeVar("T")


class _Sender:
    """The marker sender of one shard, bound to the shard's partition."""

    def __init__(self, sender: MarkerSender, partition: Partition) -> None:
        self._sender = sender
        self._partition = partition

    def send(self, markers: Markers) -> None:
        self._sender.send(self._partition, markers)


class TransactionDriver(CoordinatorDriver[TransactionShard, TransactionRecord]):
    def __init__(self, broker: TransactionContext, producer_ids: ProducerIds) -> None:
        config = broker.config
        self._producer_ids = producer_ids
        self._broker = broker
        self.sender = MarkerSender(broker, self._complete)
        self.options = TransactionShardOptions(
            abort_check_interval_ms=lambda: config.transactions.abort_check_interval_ms,
            id_expiration_ms=lambda: config.transactions.id_expiration_ms,
            expiration_check_interval_ms=lambda: config.transactions.expiration_check_interval_ms,
            transaction_version=lambda: broker.image.features.levels.get(TRANSACTION_VERSION, 0),
            spare_producer_id=producer_ids.take_nowait,
        )
        super().__init__(
            broker,
            CoordinatorTopic(
                name=TRANSACTION_STATE_TOPIC,
                partition_count=config.transaction_topic.partition_count,
                commit_timeout_ms=config.replication.request_timeout_ms,
                load_buffer_bytes=config.transaction_topic.load_buffer_bytes,
            ),
            self._build_shard,
        )

    def _build_shard(
        self, partition: Partition, registry: SnapshotRegistry, timers: Timers[TransactionRecord]
    ) -> TransactionShard:
        return TransactionShard(registry, timers, self.options, _Sender(self.sender, partition))

    def partition_lost(self, index: int) -> None:
        super().partition_lost(index)
        self.sender.drop(index)

    async def ask(
        self, transactional_id: str, operation: Callable[[TransactionShard, int | None], Result[TransactionRecord, T]]
    ) -> T:
        """Run an operation that may need a new producer id and return its response; raises `ApiError`."""
        try:
            return await self._ask_with(transactional_id, operation, None)
        except ProducerIdRequired:
            producer_id = await self._producer_ids.take()
            return await self._ask_with(transactional_id, operation, producer_id)

    async def _ask_with(
        self,
        transactional_id: str,
        operation: Callable[[TransactionShard, int | None], Result[TransactionRecord, T]],
        producer_id: int | None,
    ) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def succeed(response: T) -> None:
            if not answer.done():
                answer.set_result(response)

        def fail(error: ApiError) -> None:
            if not answer.done():
                answer.set_exception(error)

        self.write(transactional_id, lambda shard: operation(shard, producer_id), ResponseCallback(succeed, fail))
        return await answer

    def _complete(self, markers: Markers, reply: ResponseCallback[bool]) -> None:
        self.write(markers.transactional_id, lambda shard: shard.complete(markers, self._broker.now_ms()), reply)

    # Metrics

    def counts(self) -> list[dict[TransactionState, int]]:
        return [driver.host.shard.counts() for driver in self._active()]

    def load_times_ms(self) -> list[float]:
        return [driver.load_seconds * 1000 for driver in self._active()]
