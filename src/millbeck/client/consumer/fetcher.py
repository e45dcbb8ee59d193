"""Fetch in the background: one loop per broker that leads an assigned partition, each with one fetch in flight.

A partition is fetched while less than ``max.partition.fetch.bytes`` of it are buffered, and while all partitions
together buffer less than ``fetch.max.bytes``; so memory is bounded by about twice that. Responses that have become
stale (after a seek or a new assignment) are discarded.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from millbeck.client.cluster import FETCH, Cluster
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.fetch_session import FetchSession, FetchTarget
from millbeck.client.consumer.fetched_columns import CompletedColumnFetch
from millbeck.client.consumer.metrics import ConsumerMetrics
from millbeck.client.consumer.positions import SubscriptionState, TopicPartitionState
from millbeck.client.errors import UnsupportedByBroker
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    CorruptMessage,
    FetchSessionIdNotFound,
    FetchSessionTopicIdError,
    InvalidFetchSessionEpoch,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    from_code,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.fetch import FetchedPartition, FetchRequest, FetchResponse

log = logging.getLogger(__name__)

_TOPIC_ID_FROM: Final = 13
_RESPONSE_MARGIN_S: Final = 1.0
_NO_END: Final = (1 << 63) - 1
_WAIT_WITH_FULL_BUFFERS_MS: Final = 50
"""The maximum wait of a fetch while other partitions of that broker are left out because their buffers are full."""
_SESSION_LOST: Final = (
    FetchSessionIdNotFound.code,
    InvalidFetchSessionEpoch.code,
    FetchSessionTopicIdError.code,
)

AuthorizedResource = dict[TopicPartition, tuple[TopicPartitionState, int, int]]
"""The partitions of a fetch, each with its state, fetch generation and offset at the time of sending."""


class Fetcher:
    def __init__(
        self,
        cluster: Cluster,
        config: ConsumerConfig,
        positions: SubscriptionState,
        *,
        on_arrival: Callable[[], None],
        on_error: Callable[[ApiError], None],
        on_out_of_range: Callable[[TopicPartitionState, int], None],
        metrics: ConsumerMetrics,
    ) -> None:
        self._cluster = cluster
        self._config = config
        self._positions = positions
        self._on_arrival = on_arrival
        self._on_error = on_error
        self._on_out_of_range = on_out_of_range
        self._metrics = metrics
        self._loops: dict[int, asyncio.Task[None]] = {}
        self._wakers: dict[int, asyncio.Event] = {}
        cluster.on_update.append(self.wake)

    def wake(self) -> None:
        """Called after a change of positions, buffers or leaders."""
        for node_id in self._nodes_to_ask():
            if node_id not in self._loops:
                self._wakers[node_id] = asyncio.Event()
                self._loops[node_id] = self._cluster.spawn(self._run(node_id))
        for waker in self._wakers.values():
            waker.set()

    def _nodes_to_ask(self) -> list[int]:
        nodes: dict[int, None] = {}
        is_leader_missing = False
        for state in self._positions:
            if state.is_fetchable:
                node_id = self._node_of(state)
                if node_id is None:
                    is_leader_missing = True
                else:
                    nodes[node_id] = None
        if is_leader_missing:
            self._cluster.request_refresh()
        return list(nodes)

    def _node_of(self, state: TopicPartitionState) -> int | None:
        if state.preferred_replica in self._cluster.metadata.brokers:
            return state.preferred_replica
        try:
            return self._cluster.metadata.leader(*state.partition).node_id
        except ApiError:
            return None

    async def _run(self, node_id: int) -> None:
        """Fetch from one broker until it leads no assigned partition."""
        session = FetchSession()
        waker = self._wakers[node_id]
        failures = 0
        try:
            while True:
                waker.clear()
                wanted, asked, has_full_buffers = self._plan(node_id)
                if not wanted:
                    if not has_full_buffers:
                        return
                    await waker.wait()
                    continue
                try:
                    is_refused = await self._fetch(node_id, session, wanted, asked, has_full_buffers)
                    failures = failures + 1 if is_refused else 0
                    if is_refused:
                        # The broker answers errors without delay: back off to avoid a busy loop.
                        await asyncio.sleep(self._cluster.backoff.delay_s(failures))
                except ApiError as error:
                    session.reset()
                    failures += 1
                    log.debug("fetch from broker %d failed: %s", node_id, error)
                    if isinstance(error, UnsupportedByBroker):
                        self._on_error(error)
                    for state, _, _ in asked.values():
                        state.preferred_replica = -1
                    self._cluster.request_refresh()
                    await asyncio.sleep(self._cluster.backoff.delay_s(failures))
        finally:
            del self._loops[node_id], self._wakers[node_id]

    def _plan(self, node_id: int) -> tuple[dict[TopicPartition, FetchTarget], AuthorizedResource, bool]:
        wanted: dict[TopicPartition, FetchTarget] = {}
        asked: AuthorizedResource = {}
        has_full_buffers = False
        metadata = self._cluster.metadata
        is_full = self._positions.buffered_bytes >= self._config.fetch_max_bytes
        for state in self._positions:
            if not state.is_fetchable or self._node_of(state) != node_id:
                continue
            if state.buffered_bytes and (is_full or state.buffered_bytes >= self._config.max_partition_fetch_bytes):
                has_full_buffers = True
                continue
            partition = state.partition
            wanted[partition] = FetchTarget(
                state.fetch_offset,
                metadata.partition(*partition).leader_epoch,
                self._config.max_partition_fetch_bytes,
                metadata.topic_id(partition.topic),
            )
            asked[partition] = (state, state.turn, state.fetch_offset)
        return wanted, asked, has_full_buffers

    async def _fetch(
        self,
        node_id: int,
        session: FetchSession,
        wanted: dict[TopicPartition, FetchTarget],
        asked: AuthorizedResource,
        has_full_buffers: bool,
    ) -> bool:
        """Send one fetch and process the response; returns whether a partition had an error."""
        config = self._config
        connection = await self._cluster.connection(node_id, FETCH, deadline=Deadline(config.request_timeout_ms / 1000))
        plan = session.plan(wanted)
        max_wait_ms = config.fetch_max_wait_ms
        if has_full_buffers:
            max_wait_ms = min(max_wait_ms, _WAIT_WITH_FULL_BUFFERS_MS)
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=int(config.reads_committed),
            session_id=plan.session_id,
            session_epoch=plan.session_epoch,
            topics=plan.topics,
            forgotten_topics_data=plan.forgotten,
            rack_id=config.client_rack,
        )
        asked_s = asyncio.get_running_loop().time()
        response = await connection.request(
            request,
            FetchResponse,
            timeout_s=(config.request_timeout_ms + max_wait_ms) / 1000 + _RESPONSE_MARGIN_S,
            version_max=None if plan.uses_ids else _TOPIC_ID_FROM - 1,
        )
        if response.error_code in _SESSION_LOST:
            session.reset()
            return False
        if response.error_code:
            raise from_code(response.error_code)
        session.answered(response.session_id)
        self._count(response, asked_s)
        return self._accept(response, asked)

    def _count(self, response: FetchResponse, asked_s: float) -> None:
        now_s = asyncio.get_running_loop().time()
        metadata = self._cluster.metadata
        sizes: dict[str, int] = {}
        for topic in response.responses:
            size_bytes = sum(len(found.records) for found in topic.partitions if found.records)
            if size_bytes:
                sizes[topic.topic or metadata.topic_name(topic.topic_id) or ""] = size_bytes
        self._metrics.fetched(sizes, asked_s, now_s)
        if response.throttle_time_ms > 0:
            self._metrics.fetch_throttle_time.add(response.throttle_time_ms, now_s)

    def _accept(self, response: FetchResponse, asked: AuthorizedResource) -> bool:
        metadata = self._cluster.metadata
        for endpoint in response.node_endpoints:
            metadata.learn_broker(endpoint.node_id, endpoint.host, endpoint.port, endpoint.rack)
        has_arrived = is_refused = False
        for topic in response.responses:
            name = topic.topic or metadata.topic_name(topic.topic_id)
            if name is None:
                self._cluster.request_refresh()
                continue
            for found in topic.partitions:
                entry = asked.get(TopicPartition(name, found.partition_index))
                if entry is None:
                    continue
                state, turn, offset = entry
                if state.turn != turn or self._positions.get(state.partition) is not state:
                    continue
                if found.error_code:
                    is_refused = True
                    self._refused(state, found, offset)
                else:
                    has_arrived |= self._arrived(state, found, offset)
        if has_arrived:
            self._on_arrival()
        return is_refused

    def _arrived(self, state: TopicPartitionState, found: FetchedPartition, offset: int) -> bool:
        state.high_watermark = found.high_watermark
        state.last_stable_offset = found.last_stable_offset
        if found.log_start_offset >= 0:
            state.log_start_offset = found.log_start_offset
        if found.preferred_read_replica >= 0:
            state.preferred_replica = found.preferred_read_replica
            return False
        if not found.records:
            return False
        aborted = [(entry.first_offset, entry.producer_id) for entry in found.aborted_transactions or ()]
        chunk = CompletedColumnFetch(
            found.records,
            offset,
            _NO_END,
            aborted=aborted if self._config.reads_committed else None,
            checks_crcs=self._config.check_crcs,
            limit_bytes=self._config.decompressed_max_bytes,
            partition=state.partition,
        )
        try:
            next_offset = chunk.skip_to_end()
        except CorruptMessage:
            # Decoding the chunk raises the same error again in poll, where the program sees it.
            state.received(chunk, offset)
            return True
        if next_offset == offset:
            return False
        state.received(chunk, next_offset)
        return True

    def _refused(self, state: TopicPartitionState, found: FetchedPartition, offset: int) -> None:
        error = from_code(found.error_code)
        leader = found.current_leader
        if leader.leader_id >= 0:
            self._cluster.metadata.set_leader(*state.partition, leader.leader_id, leader.leader_epoch)
        if isinstance(error, OffsetOutOfRange):
            if state.preferred_replica >= 0:
                # A follower may lag behind; only the leader can confirm the error.
                state.preferred_replica = -1
            elif state.chunks or state.has_records:
                # The program has not reached that offset yet; it is fetched again when it has.
                state.fetch_offset = offset
            else:
                self._on_out_of_range(state, offset)
            return
        state.preferred_replica = -1
        if isinstance(error, TopicAuthorizationFailed):
            self._on_error(TopicAuthorizationFailed(f"not allowed to read {state.partition}"))
        elif isinstance(error, CorruptMessage) and not state.has_records and not state.chunks:
            # Raised after the program has read the records before it.
            self._on_error(
                CorruptMessage(f"{state.partition} at offset {offset}: the broker cannot read its log there")
            )
        if error.retriable:
            self._cluster.request_refresh()
        else:
            log.warning("fetch of %s failed: %s", state.partition, error)
