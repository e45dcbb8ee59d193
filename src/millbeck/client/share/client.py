"""`ShareConsumer`: reads records as a member of a share group and acknowledges each of them.

    async with ShareConsumer({"bootstrap.servers": "...", "group.id": "jobs"}) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for delivery in await consumer.poll(timeout_s=1.0):
                ...                                     # delivery.record, delivery.delivery_count

With ``share.acknowledgement.mode=implicit`` the next poll (or `commit`, or `close`) accepts the records of the previous
one. With ``explicit`` the program calls `acknowledge` for each record; acknowledgements are sent with the next fetch,
or at once by `commit`, which returns the results. A record not acknowledged before its acquisition lock times out is
delivered again, so `commit` may return INVALID_RECORD_STATE.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Generic, NamedTuple, Self, cast

from millbeck.client.cluster import FETCH, Cluster
from millbeck.client.config import Value
from millbeck.client.consumer.decoding import ConsumerInterceptor, RecordDecoder
from millbeck.client.errors import ClientClosed, DeserializationFailed
from millbeck.client.lifecycle import LoopBound, merged
from millbeck.client.metrics.registry import MetricName
from millbeck.client.retry import Deadline
from millbeck.client.serialization import Deserializer
from millbeck.client.share.config import ShareConsumerConfig
from millbeck.client.share.membership import ShareMembership
from millbeck.client.share.session import (
    Acknowledgements,
    AcknowledgeType,
    Place,
    ShareFetchLimits,
    ShareSessionHandler,
)
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    InvalidConfig,
    InvalidRequest,
    NetworkException,
    NotLeaderOrFollower,
    from_code,
)
from millbeck.kernel.ids import TopicPartition, uuid_text
from millbeck.records import batch
from millbeck.records.record import Record, RecordSource
from millbeck.records.typevars import K, V
from millbeck.wire.messages.share_fetch import ShareAcknowledgeResponse, ShareFetchPartitionResult, ShareFetchResponse

log = logging.getLogger(__name__)

_CLOSE_SECONDS_MAX: Final = 5.0
_TROUBLE_PAUSE_SECONDS: Final = 0.1


class AcquiredRecord(NamedTuple, Generic[K, V]):
    """A record that this member has acquired, and how often it has been delivered."""

    partition: TopicPartition
    record: Record[K, V]
    delivery_count: int
    topic_id: bytes
    node_id: int

    @property
    def place(self) -> Place:
        return self.topic_id, self.partition.partition


Outcomes = dict[TopicPartition, ApiError | None]
OnAcknowledged = Callable[[TopicPartition, Mapping[int, AcknowledgeType], ApiError | None], None]


class ShareConsumer(LoopBound, Generic[K, V]):
    """The share consumer. It is started by its first call inside an event loop; use it as an async context manager, or
    call `close`."""

    def __init__(
        self,
        settings: Mapping[str, object] | ShareConsumerConfig | None = None,
        *,
        on_acknowledged: OnAcknowledged | None = None,
        key_deserializer: Deserializer[K] | str | None = None,
        value_deserializer: Deserializer[V] | str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        """``on_acknowledged`` gets the result of every acknowledgement, including implicit ones."""
        super().__init__(environment)
        given = settings if isinstance(settings, ShareConsumerConfig) else None
        config = given or ShareConsumerConfig.parse(merged(cast("Mapping[str, object]", settings), named))
        if not config.group_id:
            raise InvalidConfig("a share consumer needs group.id")
        self.config = config
        self._decoder = RecordDecoder(config, key_deserializer, value_deserializer, interceptors)
        self._on_acknowledged = on_acknowledged
        self._topics: list[str] = []
        self._sessions: dict[int, ShareSessionHandler] = {}
        self._fetching: dict[int, asyncio.Task[None]] = {}
        self._ready: deque[AcquiredRecord] = deque()
        self._unacknowledged: dict[tuple[Place, int], AcquiredRecord] = {}
        self._changed = asyncio.Event()
        self._is_upkept = False
        self._is_closed = False
        self.acquisition_lock_timeout_ms: int | None = None
        """The time for which an acquired record is this member's, as the brokers say with fetched records."""

    def _start(self) -> None:
        group_id = self.config.group_id
        assert group_id is not None
        self._cluster = Cluster(self.environment, self.config, kind="consumer-share")
        # An assignment may come before the metadata of its topics: a poll waits for both.
        self._cluster.on_update.append(self._wake_up)
        self._membership = ShareMembership(self._cluster, group_id, self.config.client_rack, self._wake_up)
        self._cluster.member_id = lambda: self.member_id
        if self._topics:
            self._subscribed()

    @property
    def cluster(self) -> Cluster:
        self._enter()
        return self._cluster

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def metrics(self) -> dict[MetricName, float]:
        """The values of all metrics now, under the names of Kafka's Java clients."""
        return self.cluster.metrics.read()

    async def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        """The id under which brokers collect this client's metrics (KIP-714); raises `UnsupportedByBroker` if they do
        not."""
        return uuid_text(
            await self.cluster.client_instance_id(
                self.config.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s
            )
        )

    @property
    def member_id(self) -> str:
        self._enter()
        return self._membership.member_id

    @property
    def assigned(self) -> dict[bytes, list[int]]:
        """Partitions by topic id."""
        self._enter()
        return self._membership.assigned

    def subscribe(self, topics: Iterable[str]) -> None:
        """Read these topics, together with the other members of the group."""
        self._topics = [topics] if isinstance(topics, str) else list(topics)
        if not self.is_started and asyncio._get_running_loop() is None:
            return
        if self.is_started:
            self._enter()
            self._subscribed()
        else:
            self._enter()

    def _subscribed(self) -> None:
        self._cluster.add_topics(self._topics)
        if not self._is_upkept:
            self._is_upkept = True
            self._cluster.start_upkeep()
        self._membership.subscribe(self._topics)

    @property
    def subscription(self) -> list[str]:
        """The topics subscribed to."""
        return list(self._topics)

    async def unsubscribe(self) -> None:
        """Leave the group; records that are not acknowledged are delivered again. `subscribe` joins again."""
        self._enter()
        self._topics = []
        await self._leave()
        self._sessions.clear()
        self._ready.clear()
        self._unacknowledged.clear()

    # reading

    async def poll(self, *, timeout_s: float = 1.0) -> list[AcquiredRecord[K, V]]:
        """Some acquired records, or none if none arrive in time."""
        self._enter()
        if self._is_closed:
            raise ClientClosed("the share consumer is closed")
        if not self._topics:
            raise InvalidRequest("there is nothing to read: call subscribe() first")
        if not self.config.is_explicit:
            self._complete_all(AcknowledgeType.ACCEPT)
        deadline = Deadline(timeout_s)
        while True:
            if self._membership.failure is not None:
                raise self._membership.failure
            if self._ready:
                return self._take()
            self._changed.clear()
            await self._begin_fetches(deadline)
            left_s = deadline.remaining_s
            if left_s <= 0:
                return []
            try:
                async with asyncio.timeout(left_s):
                    await self._changed.wait()
            except TimeoutError:
                return self._take()

    def _take(self) -> list[AcquiredRecord[K, V]]:
        found: list[AcquiredRecord[K, V]] = []
        while self._ready and len(found) < self.config.max_poll_records:
            delivery = self._ready[0]
            try:
                decoded = delivery._replace(record=self._decoder.decode(delivery.record))
            except DeserializationFailed:
                if not found:
                    # The record cannot be decoded, so it is rejected and not delivered again.
                    self._add_acknowledgement(self._ready.popleft(), AcknowledgeType.REJECT)
                    raise
                break
            self._ready.popleft()
            self._unacknowledged[delivery.place, delivery.record.offset] = delivery
            found.append(cast("AcquiredRecord[K, V]", decoded))
        return found

    async def _begin_fetches(self, deadline: Deadline) -> None:
        by_node: dict[int, list[tuple[Place, str]]] = {}
        for topic_id, indexes in list(self._membership.assigned.items()):
            name = self.cluster.metadata.topic_name(topic_id)
            if name is None:
                self.cluster.request_refresh()
                continue
            for index in indexes:
                try:
                    leader = self.cluster.metadata.leader(name, index)
                except ApiError:
                    self.cluster.request_refresh()
                    continue
                by_node.setdefault(leader.node_id, []).append(((topic_id, index), name))
        for node_id in dict.fromkeys([*by_node, *self._sessions]):
            if node_id in self._fetching:
                continue
            wanted = by_node.get(node_id, [])
            session = self._sessions.get(node_id)
            if wanted or (session is not None and session.has_acknowledgements):
                self._fetching[node_id] = self.cluster.spawn(self._fetch(node_id, dict(wanted)))

    async def _fetch(self, node_id: int, wanted: dict[Place, str]) -> None:
        session = self._sessions.get(node_id)
        if session is None:
            session = self._sessions[node_id] = ShareSessionHandler(self._membership._group_id, self.member_id)
        acknowledgements = session.take_acknowledgements() if session.is_open else {}
        renewing = {
            place: offsets for place, offsets in acknowledgements.items() if AcknowledgeType.RENEW in offsets.values()
        }
        try:
            if renewing:
                # A ShareFetch with RENEW acknowledgements cannot fetch records too, so they are sent separately.
                await self._acknowledge(node_id, session, acknowledgements)
                acknowledgements = {}
            request = session.fetch_request(wanted, self._limits(), acknowledgements)
            deadline = Deadline(self.cluster.config.request_timeout_ms / 1000)
            response = await self.cluster.request(
                request, ShareFetchResponse, deadline=deadline, node_id=node_id, purpose=FETCH
            )
            if response.error_code:
                raise from_code(response.error_code, response.error_message or "")
            session.answered()
            if response.acquisition_lock_timeout_ms > 0:
                self.acquisition_lock_timeout_ms = response.acquisition_lock_timeout_ms
            self._received(node_id, response, wanted, acknowledgements)
        except ApiError as error:
            log.debug("share fetch from broker %d: %s", node_id, error)
            self._lost(node_id, session, acknowledgements, error)
            self.cluster.request_refresh()
            await asyncio.sleep(_TROUBLE_PAUSE_SECONDS)
        finally:
            self._fetching.pop(node_id, None)
            self._wake_up()

    def _limits(self) -> ShareFetchLimits:
        config = self.config
        return ShareFetchLimits(
            config.fetch_max_wait_ms,
            config.fetch_min_bytes,
            config.fetch_max_bytes,
            config.max_poll_records,
            config.acquire_mode == "record_limit",
        )

    def _received(
        self, node_id: int, response: ShareFetchResponse, wanted: dict[Place, str], acknowledgements: Acknowledgements
    ) -> None:
        for topic in response.responses:
            for result in topic.partitions:
                place = (topic.topic_id, result.partition_index)
                if place in acknowledgements:
                    error = None
                    if result.acknowledge_error_code:
                        error = from_code(result.acknowledge_error_code, result.acknowledge_error_message or "")
                    self._report_acknowledgements(place, acknowledgements.pop(place), error)
                if result.error_code:
                    if result.error_code == NotLeaderOrFollower.code:
                        self.cluster.request_refresh()
                    log.debug("share fetch of partition %d: error %d", result.partition_index, result.error_code)
                elif place in wanted:
                    self._read(node_id, place, wanted[place], result)
        for place, offsets in acknowledgements.items():
            self._report_acknowledgements(
                place, offsets, NetworkException("the broker returned no result for the acknowledgement")
            )

    def _read(self, node_id: int, place: Place, name: str, result: ShareFetchPartitionResult) -> None:
        """Queue acquired records; acquired offsets without a record are acknowledged as gaps."""
        counts = {
            offset: each.delivery_count
            for each in result.acquired_records
            for offset in range(each.first_offset, each.last_offset + 1)
        }
        partition = TopicPartition(name, place[1])
        for part in batch.split(result.records or b"", partial_tail=True):
            if part.header.is_control:
                continue
            source = RecordSource(*partition, part.header.partition_leader_epoch, int(part.header.timestamp_type))
            for record in batch.records_of(part.data, check_crc=self.config.check_crcs, source=source):
                count = counts.pop(record.offset, None)
                if count is not None:
                    self._ready.append(AcquiredRecord(partition, record, count, place[0], node_id))
        session = self._sessions[node_id]
        for offset in counts:
            session.acknowledge(place, offset, AcknowledgeType.GAP)

    # acknowledging

    def acknowledge(self, delivery: AcquiredRecord[Any, Any], kind: AcknowledgeType = AcknowledgeType.ACCEPT) -> None:
        """Acknowledge a record returned by poll."""
        if not self.config.is_explicit:
            raise InvalidRequest("records are accepted implicitly: share.acknowledgement.mode is implicit")
        key = (delivery.place, delivery.record.offset)
        if kind is not AcknowledgeType.RENEW:
            self._unacknowledged.pop(key, None)
        self._add_acknowledgement(delivery, kind)

    def _complete_all(self, kind: AcknowledgeType) -> None:
        unacknowledged, self._unacknowledged = self._unacknowledged, {}
        for delivery in unacknowledged.values():
            self._add_acknowledgement(delivery, kind)

    def _add_acknowledgement(self, delivery: AcquiredRecord[Any, Any], kind: AcknowledgeType) -> None:
        session = self._sessions.get(delivery.node_id)
        if session is not None and session.is_open:
            session.acknowledge(delivery.place, delivery.record.offset, kind)
        else:
            error = NetworkException("the share session in which it was acquired has ended")
            self._report_acknowledgements(delivery.place, {delivery.record.offset: kind}, error)

    async def commit(self, *, timeout_s: float = 30.0) -> Outcomes:
        """Send acknowledgements and wait for the results; each partition's error, None for success."""
        self._enter()
        if not self.config.is_explicit:
            self._complete_all(AcknowledgeType.ACCEPT)
        outcomes: Outcomes = {}
        async with asyncio.timeout(timeout_s):
            for node_id, session in list(self._sessions.items()):
                while node_id in self._fetching:
                    await asyncio.wait([self._fetching[node_id]])
                acknowledgements = session.take_acknowledgements()
                if acknowledgements:
                    await self._acknowledge(node_id, session, acknowledgements, outcomes)
        return outcomes

    async def _acknowledge(
        self,
        node_id: int,
        session: ShareSessionHandler,
        acknowledgements: Acknowledgements,
        outcomes: Outcomes | None = None,
        *,
        is_last: bool = False,
    ) -> None:
        request = session.acknowledge_request(acknowledgements, is_last=is_last)
        deadline = Deadline(self.cluster.config.request_timeout_ms / 1000)
        try:
            response = await self.cluster.request(
                request, ShareAcknowledgeResponse, deadline=deadline, node_id=node_id, purpose=FETCH
            )
            if response.error_code:
                raise from_code(response.error_code, response.error_message or "")
        except ApiError as error:
            self._lost(node_id, session, acknowledgements, error, outcomes)
            return
        session.answered()
        left = dict(acknowledgements)
        for topic in response.responses:
            for result in topic.partitions:
                place = (topic.topic_id, result.partition_index)
                offsets = left.pop(place, None)
                if offsets is not None:
                    refusal = from_code(result.error_code, result.error_message or "") if result.error_code else None
                    self._report_acknowledgements(place, offsets, refusal, outcomes)
        for place, offsets in left.items():
            self._report_acknowledgements(
                place, offsets, NetworkException("the broker returned no result for the acknowledgement"), outcomes
            )

    def _report_acknowledgements(
        self,
        place: Place,
        offsets: dict[int, AcknowledgeType],
        error: ApiError | None,
        outcomes: Outcomes | None = None,
    ) -> None:
        name = self.cluster.metadata.topic_name(place[0]) or ""
        partition = TopicPartition(name, place[1])
        if outcomes is not None:
            outcomes[partition] = outcomes.get(partition) or error
        if self._on_acknowledged is not None:
            self._on_acknowledged(partition, offsets, error)

    def _lost(
        self,
        node_id: int,
        session: ShareSessionHandler,
        acknowledgements: Acknowledgements,
        error: ApiError,
        outcomes: Outcomes | None = None,
    ) -> None:
        """Called when the session has ended: its records are released to other members, and pending acknowledgements
        are no longer valid."""
        for unsent in (acknowledgements, session.reset()):
            for place, offsets in unsent.items():
                self._report_acknowledgements(place, offsets, error, outcomes)
        self._ready = deque(each for each in self._ready if each.node_id != node_id)
        self._unacknowledged = {key: each for key, each in self._unacknowledged.items() if each.node_id != node_id}

    # lifecycle

    def _wake_up(self) -> None:
        self._changed.set()

    async def close(self) -> None:
        """Accept (implicit mode) or release (explicit mode) pending records, and leave the group."""
        if self._is_closed:
            return
        if not self.is_started:
            self._is_closed = True
            return
        self._enter()
        self._is_closed = True
        try:
            await self._leave()
        finally:
            await self.cluster.close()

    async def _leave(self) -> None:
        """Close the sessions with the brokers, which release what is not acknowledged, and leave the group."""
        try:
            async with asyncio.timeout(_CLOSE_SECONDS_MAX):
                if not self.config.is_explicit:
                    self._complete_all(AcknowledgeType.ACCEPT)
                for node_id, session in list(self._sessions.items()):
                    while node_id in self._fetching:
                        await asyncio.wait([self._fetching[node_id]])
                    if session.is_open:
                        await self._acknowledge(node_id, session, session.take_acknowledgements(), is_last=True)
                await self._membership.leave()
        except (ApiError, TimeoutError) as error:
            log.debug("leaving: %s", error)
