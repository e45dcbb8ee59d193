"""Sends whole batches of encoded records, without one future per record.

    async with BulkProducer(environment, {...}) as producer:
        await producer.put(TopicPartition("orders", 0), payload, record_count)     # waits for the one before
        ends = await producer.finish()                                             # acknowledged, all of it

A partition has one batch in flight, so order and sequences need only a counter: a batch is retried with its sequence
until a broker has stored it. Batches are large (`RecordBuffer` fills them), which makes up for the missing pipelining.
The producer is idempotent: a retried batch is stored once. With a ticket (`shared_transaction`) the batches belong to a
transaction that is ended elsewhere. If a broker reports the first batch with a ticket as a duplicate, another writer
has used the same ticket for that partition, which is an error.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self

from millbeck.client.cluster import Cluster
from millbeck.client.config import Value
from millbeck.client.errors import DeliveryTimeout
from millbeck.client.metadata import TopicView
from millbeck.client.offset_requests import list_offsets
from millbeck.client.producer.batch import NOBODY, SEQUENCE_COUNT, ProducerIdentity
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.shared_transaction import TransactionHandle
from millbeck.client.retry import Deadline
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    DuplicateSequenceNumber,
    InvalidTxnState,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    UnknownServerError,
    UnknownTopicOrPartition,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID, TopicPartition
from millbeck.records.batch import NO_SEQUENCE, assemble
from millbeck.records.compression import Codec, compress
from millbeck.records.header import TRANSACTIONAL_BIT
from millbeck.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

LATEST: Final = -1
_TOPIC_ID_FROM: Final = 13
_RESPONSE_MARGIN_S: Final = 5.0
_TRANSACTION_TIMEOUT_UNUSED_MS: Final = 60_000
_TOPIC_APPEARS_S: Final = 5.0


class _Lane:
    """The delivery state of one partition."""

    __slots__ = ("delivery", "end_offset", "first_free_offset", "next_sequence", "record_count")

    def __init__(self, first_free_offset: int) -> None:
        self.first_free_offset = first_free_offset
        """The log end offset before the first batch; known only if it is needed."""
        self.next_sequence = 0
        self.record_count = 0
        self.end_offset = -1
        self.delivery: asyncio.Task[None] | None = None


class BatchProducer:
    """The producer of batches. Create it inside a running event loop; use it as an async context manager, or call
    `close`."""

    def __init__(
        self,
        environment: Environment,
        settings: Mapping[str, Value] | ProducerConfig,
        *,
        ticket: TransactionHandle | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """With ``cluster``, its connections are used, and `close` leaves it open."""
        config = settings if isinstance(settings, ProducerConfig) else ProducerConfig.parse(settings)
        self.config = config
        self.cluster = cluster or Cluster(environment, config, in_flight_max=config.max_in_flight, creates_topics=True)
        self._owns_cluster = cluster is None
        self._clock = environment.clock
        self._identity = None if ticket is None else ProducerIdentity(ticket.producer_id, ticket.epoch, True)
        self._transactional_id = None if ticket is None else ticket.transactional_id
        self._codec = Codec[config.compression_type.upper()]
        self._level = config.compression_level
        self._lanes: dict[TopicPartition, _Lane] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def topic(self, name: str) -> TopicView:
        """A topic's partitions; raises `UnknownTopicOrPartition` if it does not exist.

        Unreachable brokers are waited for up to ``max.block.ms``. An unknown topic is retried for a while,
        since it may have just been created or be auto-created.
        """
        deadline = Deadline(self.config.max_block_ms / 1000)
        while True:
            try:
                return await self.cluster.topic(name, timeout_s=min(_TOPIC_APPEARS_S, deadline.remaining_s))
            except UnknownTopicOrPartition:
                raise
            except ApiError as error:
                if not error.retriable or deadline.has_passed:
                    raise

    async def put(
        self,
        partition: TopicPartition,
        payload: bytes,
        record_count: int,
        timestamps: tuple[int, int] | None = None,
    ) -> None:
        """Send a batch once the partition's previous batch is acknowledged. Raises the error of the previous batch.

        ``timestamps`` are the base and the largest of the records; without, all have the current time.
        """
        lane = self._lanes.get(partition)
        if lane is None:
            first_free_offset = -1 if self._transactional_id is None else await self._end_of(partition)
            lane = self._lanes[partition] = _Lane(first_free_offset)
        if lane.delivery is not None:
            await lane.delivery
        if self._identity is None:
            self._identity = await self._identify() if self.config.enable_idempotence else NOBODY
        batch = self._encode(payload, record_count, lane, self._identity, timestamps)
        lane.next_sequence = (lane.next_sequence + record_count) % SEQUENCE_COUNT
        lane.record_count += record_count
        lane.delivery = self.cluster.spawn(self._deliver(partition, batch, record_count))
        # Yield once, so that the request is sent.
        await asyncio.sleep(0)

    async def finish(self) -> dict[TopicPartition, tuple[int, int]]:
        """Wait for all acknowledgements; returns by partition the record count and the offset after the last record."""
        for lane in self._lanes.values():
            if lane.delivery is not None:
                await lane.delivery
        return {partition: (lane.record_count, lane.end_offset) for partition, lane in self._lanes.items()}

    async def close(self) -> None:
        """Close; batches that are not acknowledged are abandoned."""
        if self._owns_cluster:
            await self.cluster.close()

    def _encode(
        self,
        payload: bytes,
        record_count: int,
        lane: _Lane,
        identity: ProducerIdentity,
        timestamps: tuple[int, int] | None,
    ) -> bytes:
        now_ms = self._clock.wall_ms()
        base_timestamp, max_timestamp = (now_ms, now_ms) if timestamps is None else timestamps
        attributes = int(self._codec) | (TRANSACTIONAL_BIT if self._transactional_id is not None else 0)
        return assemble(
            payload if self._codec is Codec.NONE else compress(self._codec, payload, self._level),
            record_count=record_count,
            last_offset_delta=record_count - 1,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            attributes=attributes,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            base_sequence=NO_SEQUENCE if identity is NOBODY else lane.next_sequence,
        )

    async def _identify(self) -> ProducerIdentity:
        async def attempt(deadline: Deadline) -> ProducerIdentity:
            response = await self.cluster.request(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_UNUSED_MS),
                InitProducerIdResponse,
                deadline=deadline,
            )
            if response.error_code:
                raise from_code(response.error_code)
            return ProducerIdentity(response.producer_id, response.producer_epoch)

        return await self.cluster.retrying(attempt, timeout_s=self.config.max_block_ms / 1000)

    async def _deliver(self, partition: TopicPartition, batch: bytes, record_count: int) -> None:
        timeout_s = self.config.delivery_timeout_ms / 1000
        try:
            base_offset = await self.cluster.retrying(
                lambda deadline: self._attempt(partition, batch, deadline), timeout_s=timeout_s
            )
        except ApiError as error:
            if not error.retriable:
                raise
            raise DeliveryTimeout(
                f"{record_count} records for {partition} were not acknowledged within delivery.timeout.ms "
                f"({self.config.delivery_timeout_ms}); the last attempt: {error}"
            ) from error
        lane = self._lanes[partition]
        if 0 <= base_offset < lane.first_free_offset:
            raise _not_alone(partition)
        if base_offset >= 0:
            lane.end_offset = base_offset + record_count

    async def _end_of(self, partition: TopicPartition) -> int:
        await self.topic(partition.topic)

        async def attempt(deadline: Deadline) -> int:
            node_id = self.cluster.metadata.leader(*partition).node_id
            found = await list_offsets(self.cluster, node_id, {partition: LATEST}, isolation_level=0, deadline=deadline)
            answer = found[partition]
            if isinstance(answer, ApiError):
                raise answer
            return answer.offset

        return await self.cluster.retrying(attempt, timeout_s=self.config.max_block_ms / 1000)

    async def _attempt(self, partition: TopicPartition, batch: bytes, deadline: Deadline) -> int:
        """The base offset of the batch, -1 if the broker does not return it."""
        metadata = self.cluster.metadata
        await self.topic(partition.topic)
        leader = metadata.leader(*partition)
        connection = await self.cluster.connection(leader.node_id, deadline=deadline)
        topic_id = metadata.topic_id(partition.topic)
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self.config.required_acks,
            timeout_ms=self.config.request_timeout_ms,
            topic_data=[
                TopicProduceData(
                    name=partition.topic,
                    topic_id=topic_id,
                    partition_data=[PartitionProduceData(index=partition.partition, records=batch)],
                )
            ],
        )
        version_max = None if topic_id != ZERO_UUID else _TOPIC_ID_FROM - 1
        if self.config.required_acks == 0:
            connection.send_no_response(request, version_max=version_max)
            return -1
        response = await connection.request(
            request,
            ProduceResponse,
            # The broker waits up to request.timeout.ms for replicas; add a margin for its response.
            timeout_s=min(deadline.remaining_s, self.config.request_timeout_ms / 1000 + _RESPONSE_MARGIN_S),
            version_max=version_max,
        )
        return self._accept(partition, response)

    def _accept(self, partition: TopicPartition, response: ProduceResponse) -> int:
        results = [result for topic in response.responses for result in topic.partition_responses]
        if len(results) != 1:
            raise UnknownServerError(f"the broker did not answer for {partition}")
        (result,) = results
        for endpoint in response.node_endpoints:
            self.cluster.metadata.learn_broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
        leader = result.current_leader
        if leader.leader_id >= 0:
            self.cluster.metadata.set_leader(*partition, leader.leader_id, leader.leader_epoch)
        if result.error_code in (0, DuplicateSequenceNumber.code):
            return result.base_offset
        if result.error_code == OutOfOrderSequenceNumber.code and self._transactional_id is not None:
            raise _not_alone(partition)
        raise _error_of(partition, result)


def _not_alone(partition: TopicPartition) -> InvalidTxnState:
    """The error of a sequence gap: sequences of a ticket are contiguous from 0 unless two writers use it."""
    return InvalidTxnState(f"another writer produces to {partition} in the same transaction")


def _error_of(partition: TopicPartition, result: PartitionProduceResponse) -> ApiError:
    if result.error_code == MessageTooLarge.code:
        return MessageTooLarge(
            f"the batch is too large for {partition}: see max.message.bytes of the topic, message.max.bytes of brokers"
        )
    error = from_code(result.error_code, result.error_message or "")
    return type(error)(f"{partition}: {error}")
