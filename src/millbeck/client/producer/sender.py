"""Sends the batches of the accumulator: builds Produce requests per broker and handles the responses.

Everything happens in `_pump`, which runs at most once per event loop iteration: it checks each partition with a due
batch, finds its leader's connection and fills requests with at most one batch per partition. It is woken by new or full
batches, responses, new metadata, opened connections and a timer for the next deadline (linger, retry backoff, delivery
timeout). There is no task per request.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable
from typing import Final

from millbeck.client.cluster import Cluster
from millbeck.client.connection import Connection
from millbeck.client.errors import ClientClosed, ConnectFailed, DeliveryTimeout
from millbeck.client.producer.accumulator import RecordAccumulator
from millbeck.client.producer.batch import ProducerBatch, ProducerIdentity
from millbeck.client.producer.config import ProducerConfig
from millbeck.client.producer.metrics import ProducerMetrics
from millbeck.client.producer.partition_queue import PartitionQueue
from millbeck.client.producer.transactions import Stage, Transactions
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    MessageTooLarge,
    NetworkException,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    UnknownProducerId,
    UnknownServerError,
    from_code,
)
from millbeck.kernel.ids import ZERO_UUID, TopicPartition
from millbeck.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from millbeck.wire.messages.transactions import InitProducerIdRequest, InitProducerIdResponse

log = logging.getLogger(__name__)

_FATE_UNKNOWN: Final = (NetworkException, RequestTimedOut, NotEnoughReplicasAfterAppend)
"""Errors after which it is unknown whether the broker has stored the batch."""
_TOPIC_ID_FROM: Final = 13
_RESPONSE_MARGIN_S: Final = 5.0
_TRANSACTION_TIMEOUT_UNUSED_MS: Final = 60_000


class Sender:
    def __init__(self, cluster: Cluster, accumulator: RecordAccumulator, config: ProducerConfig) -> None:
        self._cluster = cluster
        self._accumulator = accumulator
        self._config = config
        self._loop = asyncio.get_running_loop()
        self._turn: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._identifying: asyncio.Task[None] | None = None
        self._is_closed = False
        self._drained: asyncio.Future[None] | None = None
        self.transactions: Transactions | None = None
        if config.transactional_id is not None:
            assert accumulator.identities is not None
            self.transactions = Transactions(cluster, accumulator.identities, config, self.wake)
        self._acks = config.required_acks
        self.metrics = ProducerMetrics(cluster.metrics)
        self._add_gauges()
        self._stuck_since_s: dict[int, float] = {}
        """Brokers that accept no batches although some are due, with the time since when."""
        self._delivery_timeout_s = config.delivery_timeout_ms / 1000
        cluster.on_update.append(self.wake)
        cluster.on_connected.append(self.wake)

    def _add_gauges(self) -> None:
        accumulator, limit = self._accumulator, self._config.buffer_memory
        gauges: dict[str, Callable[[float], float]] = {
            "buffer-total-bytes": lambda now_s: limit,
            "buffer-available-bytes": lambda now_s: limit - accumulator.used_bytes,
            "waiting-threads": lambda now_s: accumulator.waiter_count,
            "requests-in-flight": lambda now_s: self._cluster.in_flight_count,
        }
        for name, read in gauges.items():
            self._cluster.metrics.gauge("producer-metrics", name, read)

    def wake(self) -> None:
        """Run `_pump` in this iteration of the event loop."""
        if self._turn is None and not self._is_closed:
            self._turn = self._loop.call_soon(self._pump)

    def close(self) -> None:
        """Fail all batches that are not acknowledged yet."""
        self._is_closed = True
        for handle in (self._turn, self._timer):
            if handle is not None:
                handle.cancel()
        self.fail_all(ClientClosed("the producer was closed before the record was acknowledged"))

    def fail_all(self, error: ApiError) -> None:
        for queue in list(self._accumulator.queues.values()):
            for batch in list(queue.batches()):
                batch.fail(error)
                if batch not in queue.in_flight:
                    queue.dropped(batch)
                    self._accumulator.settled(batch)

    async def drain(self) -> None:
        """Wait until nothing is in flight."""
        while any(queue.in_flight for queue in self._accumulator.queues.values()):
            self._drained = self._loop.create_future()
            await self._drained

    # called by the partitioner

    def queue_length(self, partition: TopicPartition) -> int:
        return self._accumulator.queue_length(partition)

    def is_stuck(self, node_id: int) -> bool:
        limit_s = self._config.partitioner_availability_timeout_ms / 1000
        since_s = self._stuck_since_s.get(node_id)
        return since_s is not None and self._loop.time() - since_s > limit_s

    # the pump

    def _pump(self) -> None:
        self._turn = None
        now_s = self._loop.time()
        wake_s = self._expire(now_s)
        if self.transactions is not None and self.transactions.stage in (Stage.FAILED, Stage.DEAD):
            self.fail_all(self.transactions.error or InvalidTxnState())
        if self._needs_identity():
            self._arm(wake_s)
            return
        by_node: dict[int, list[PartitionQueue]] = {}
        for partition, queue in self._accumulator.queues.items():
            if not queue.may_send():
                continue
            if self.transactions is not None and not self.transactions.may_send(partition):
                continue
            ready_s = self._accumulator.ready_at_s(queue)
            if ready_s > now_s:
                wake_s = min(wake_s, ready_s)
                continue
            try:
                leader = self._cluster.metadata.leader(*partition)
            except ApiError as error:
                if queue.waiting:
                    # The error with which the batch fails if it expires.
                    queue.waiting[0].last_error = error.with_traceback(None)
                self._cluster.request_refresh()
                continue
            by_node.setdefault(leader.node_id, []).append(queue)
        for node_id, queues in by_node.items():
            wake_s = min(wake_s, self._send_to(node_id, queues, now_s))
        if self._config.partitioner_availability_timeout_ms > 0:
            self._watch_brokers(now_s)
        self._arm(wake_s)

    def _watch_brokers(self, now_s: float) -> None:
        """Update which brokers accept no batches although some are due, and since when."""
        before, self._stuck_since_s = self._stuck_since_s, {}
        brokers = self._cluster.metadata
        for partition, queue in self._accumulator.queues.items():
            # Including queues that must not send before the broker has answered their batches in flight.
            if queue.waiting and self._accumulator.ready_at_s(queue) <= now_s:
                view = brokers.topics.get(partition.topic)
                leader = None if view is None else view.partitions.get(partition.partition)
                if leader is not None and leader.leader_id >= 0:
                    self._stuck_since_s[leader.leader_id] = before.get(leader.leader_id, now_s)

    def _arm(self, wake_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wake_s < math.inf and not self._is_closed:
            self._timer = self._loop.call_at(wake_s, self.wake)

    def _expire(self, now_s: float) -> float:
        """Fail batches older than the delivery timeout; returns the time at which the next one expires."""
        next_s = math.inf
        expired: list[tuple[PartitionQueue, ProducerBatch]] = []
        for queue in self._accumulator.queues.values():
            for batch in queue.batches():
                if batch.is_over:
                    continue
                expires_s = batch.created_s + self._delivery_timeout_s
                if expires_s > now_s:
                    # The later batches of this partition are younger.
                    next_s = min(next_s, expires_s)
                    break
                expired.append((queue, batch))
        for queue, batch in expired:
            reason = "" if batch.last_error is None else f"; the last attempt: {batch.last_error}"
            late = DeliveryTimeout(
                f"{batch.record_count} records for {batch.partition} were not acknowledged within "
                f"delivery.timeout.ms ({self._config.delivery_timeout_ms}){reason}"
            )
            self._lost(late)
            self.metrics.failed(batch, now_s)
            batch.fail(late)
            # A batch in flight stays queued until its response shows whether its sequence was used.
            if batch not in queue.in_flight:
                queue.dropped(batch)
                self._accumulator.settled(batch)
        return next_s

    # producer id

    def _needs_identity(self) -> bool:
        identities = self._accumulator.identities
        if identities is None or identities.current is not None or not self._accumulator.queues:
            return False
        if self.transactions is not None:
            return True
        if self._identifying is None:
            self._identifying = self._cluster.spawn(self._identify())
            self._identifying.add_done_callback(self._identified)
        return True

    async def _identify(self) -> None:
        async def attempt(deadline: Deadline) -> ProducerIdentity:
            response = await self._cluster.request(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_TRANSACTION_TIMEOUT_UNUSED_MS),
                InitProducerIdResponse,
                deadline=deadline,
            )
            if response.error_code:
                raise from_code(response.error_code)
            return ProducerIdentity(response.producer_id, response.producer_epoch)

        identities = self._accumulator.identities
        assert identities is not None
        identities.current = await self._cluster.retrying(attempt, timeout_s=self._delivery_timeout_s)

    def _identified(self, task: asyncio.Task[None]) -> None:
        self._identifying = None
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, ApiError) and not error.retriable:
            self.fail_all(error)
        self.wake()

    # requests

    def _send_to(self, node_id: int, queues: list[PartitionQueue], now_s: float) -> float:
        """Fill requests to one broker; returns the time of the next attempt, if it is before the next response."""
        connection = self._cluster.connection_nowait(node_id)
        if connection is None or not connection.has_room:
            reason = self._cluster.why_unreachable(node_id) if connection is None else None
            if reason is not None:
                for queue in queues:
                    queue.waiting[0].last_error = ConnectFailed(reason)
            return math.inf
        if connection.throttled_until_s > now_s:
            return connection.throttled_until_s
        while queues and connection.has_room:
            batches = self._collect(queues)
            if not batches:
                break
            self._stuck_since_s.pop(node_id, None)
            self._send(connection, batches)
            served = {batch.partition for batch in batches}
            # Rotate: the queues served go to the end, so that full requests do not starve the same partitions.
            queues = [
                *(queue for queue in queues if queue.partition not in served),
                *(queue for queue in queues if queue.partition in served and self._is_due(queue, now_s)),
            ]
        return math.inf

    def _is_due(self, queue: PartitionQueue, now_s: float) -> bool:
        return queue.may_send() and self._accumulator.ready_at_s(queue) <= now_s

    def _collect(self, queues: list[PartitionQueue]) -> list[ProducerBatch]:
        """Collect at most one batch per partition, up to max.request.size in total."""
        batches: list[ProducerBatch] = []
        size_bytes = 0
        active = self._accumulator.queues
        for queue in queues:
            if not queue.waiting or not queue.may_send():
                continue
            size_bytes += queue.waiting[0].encoded_size_bytes
            if batches and size_bytes > self._config.max_request_size:
                break
            batch = queue.take()
            if batch is None:
                break
            batches.append(batch)
            active[queue.partition] = active.pop(queue.partition)
        return batches

    def _send(self, connection: Connection, batches: list[ProducerBatch]) -> None:
        metadata = self._cluster.metadata
        topics: dict[str, TopicProduceData] = {}
        has_ids = True
        sizes: list[int] = []
        for batch in batches:
            topic, number = batch.partition
            entry = topics.get(topic)
            if entry is None:
                topic_id = metadata.topic_id(topic)
                has_ids = has_ids and topic_id != ZERO_UUID
                entry = topics[topic] = TopicProduceData(name=topic, topic_id=topic_id)
            records = batch.encode()
            sizes.append(len(records))
            entry.partition_data.append(PartitionProduceData(index=number, records=records))
        self.metrics.requested(batches, sizes, self._loop.time())
        request = ProduceRequest(
            transactional_id=self._config.transactional_id,
            acks=self._acks,
            timeout_ms=self._config.request_timeout_ms,
            topic_data=list(topics.values()),
        )
        version_max = None if has_ids else _TOPIC_ID_FROM - 1
        if self.transactions is not None and self.transactions.produce_version_max is not None:
            version_max = self.transactions.produce_version_max
        try:
            if self._acks == 0:
                connection.send_no_response(request, version_max=version_max)
                self._loop.call_soon(self._finish_unanswered, batches)
                return
            connection.submit(
                request,
                ProduceResponse,
                lambda outcome: self._answered(batches, outcome),
                # The broker waits up to request.timeout.ms for replicas; add a margin for its response.
                timeout_s=self._config.request_timeout_ms / 1000 + _RESPONSE_MARGIN_S,
                version_max=version_max,
            )
        except ApiError as error:
            self._loop.call_soon(self._answered, batches, error)

    def _finish_unanswered(self, batches: list[ProducerBatch]) -> None:
        for batch in batches:
            self._finish(batch, -1, -1)
        self.wake()

    # responses

    def _answered(self, batches: list[ProducerBatch], outcome: ProduceResponse | ApiError) -> None:
        if isinstance(outcome, ApiError):
            for batch in batches:
                self._failed(batch, outcome)
        else:
            self._learn_leaders(outcome)
            if outcome.throttle_time_ms > 0:
                self.metrics.throttle_time.add(outcome.throttle_time_ms, self._loop.time())
            found = self._by_partition(outcome)
            for batch in batches:
                result = found.get(batch.partition)
                if result is None:
                    self._failed(batch, UnknownServerError(f"the broker did not answer for {batch.partition}"))
                elif result.error_code in (0, DuplicateSequenceNumber.code):
                    self._finish(batch, result.base_offset, result.log_append_time_ms)
                else:
                    self._failed(batch, _error_of(result))
        if self._drained is not None and not self._drained.done():
            self._drained.set_result(None)
        self.wake()

    def _by_partition(self, response: ProduceResponse) -> dict[TopicPartition, PartitionProduceResponse]:
        metadata = self._cluster.metadata
        return {
            TopicPartition(topic.name or metadata.topic_name(topic.topic_id) or "", result.index): result
            for topic in response.responses
            for result in topic.partition_responses
        }

    def _learn_leaders(self, response: ProduceResponse) -> None:
        """Apply the new leaders that brokers return with NOT_LEADER_OR_FOLLOWER (KIP-951)."""
        metadata = self._cluster.metadata
        for endpoint in response.node_endpoints:
            metadata.learn_broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
        for topic in response.responses:
            for result in topic.partition_responses:
                leader = result.current_leader
                if leader.leader_id >= 0:
                    name = topic.name or metadata.topic_name(topic.topic_id) or ""
                    metadata.set_leader(name, result.index, leader.leader_id, leader.leader_epoch)

    def _finish(self, batch: ProducerBatch, base_offset: int, append_time_ms: int) -> None:
        self._accumulator.queues[batch.partition].stored(batch)
        batch.succeed(base_offset, append_time_ms)
        self._accumulator.settled(batch)

    def _failed(self, batch: ProducerBatch, error: ApiError) -> None:
        queue = self._accumulator.queues[batch.partition]
        is_refused = not isinstance(error, _FATE_UNKNOWN)
        if batch.is_over:
            queue.dropped(batch, is_refused=is_refused)
            self._accumulator.settled(batch)
            return
        if isinstance(error, MessageTooLarge) and batch.record_count > 1:
            parts = batch.halves(self._accumulator.codec, self._accumulator.level)
            self.metrics.splits.add(1, self._loop.time())
            queue.replace(batch, parts)
            return
        if self._retries(queue, batch, error):
            if _is_about_leadership(error):
                self._cluster.request_refresh()
            batch.last_error = error.with_traceback(None)
            now_s = self._loop.time()
            batch.not_before_s = now_s + self._cluster.backoff.delay_s(batch.attempts)
            self.metrics.retried(batch, now_s)
            queue.put_back(batch)
            return
        queue.dropped(batch, is_refused=is_refused)
        self._lost(error)
        self.metrics.failed(batch, self._loop.time())
        batch.fail(error)
        self._accumulator.settled(batch)

    def _lost(self, error: ApiError) -> None:
        """Called when a record will not be stored: its transaction can then not be committed."""
        if self.transactions is not None:
            self.transactions.failed(error)

    def _retries(self, queue: PartitionQueue, batch: ProducerBatch, error: ApiError) -> bool:
        """Whether to retry; starts a new epoch if the broker's producer state requires it."""
        if batch.attempts > self._config.retries or self._is_closed:
            return False
        identities = self._accumulator.identities
        if identities is None:
            return error.retriable
        if self.transactions is not None:
            is_behind = isinstance(error, OutOfOrderSequenceNumber) and not queue.is_oldest(batch)
            return self.transactions.stage is Stage.OPEN and (error.retriable or is_behind)
        if isinstance(error, OutOfOrderSequenceNumber):
            # Expected if an earlier batch is retried too; otherwise the broker has lost producer state.
            if queue.is_oldest(batch):
                log.info("%s is out of order and no older batch is pending: starting a new producer epoch", batch)
                queue.reset_sequences(batch)
            return True
        if isinstance(error, UnknownProducerId):
            queue.reset_sequences(batch)
            return True
        if isinstance(error, InvalidProducerEpoch | InvalidProducerIdMapping):
            identities.discard(batch.identity)
            queue.reset_sequences(batch)
            return True
        return error.retriable


def _error_of(result: PartitionProduceResponse) -> ApiError:
    message = result.error_message or ""
    reasons = [entry.batch_index_error_message for entry in result.record_errors if entry.batch_index_error_message]
    if reasons:
        message = f"{message or 'the batch was refused'}: {'; '.join(reasons[:3])}"
    if result.error_code == MessageTooLarge.code:
        return MessageTooLarge(
            message or "the batch is too large for the broker: see max.message.bytes of the topic, message.max.bytes"
        )
    return from_code(result.error_code, message)


def _is_about_leadership(error: ApiError) -> bool:
    """Whether fresh metadata may help. A broker with too few in-sync replicas is
    still the leader, so that error is excluded."""
    return error.retriable and not isinstance(error, NotEnoughReplicas | NotEnoughReplicasAfterAppend)
