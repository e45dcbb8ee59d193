"""`Consumer`: reads records, standalone or as a group member.

    async with Consumer({"bootstrap.servers": "127.0.0.1:9092", "group.id": "billing"}) as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

    for partition, records in (await consumer.poll(timeout_s=1.0)).items():     # the same, many at a time
        ...

All effects become visible in ``async for`` and `poll`: they return records, run the rebalance callbacks given to
`subscribe`, and raise errors. Fetching, heartbeats and joining run in background tasks. With ``enable.auto.commit``
they commit the records returned before. ``async for`` returns records in order by partition, some of each partition in
turn, and ends when the consumer is closed; a commit inside the loop includes the current record.
"""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self, TypeVar, cast

from millbeck.client.cluster import Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.config import Value
from millbeck.client.consumer import commits
from millbeck.client.consumer.assignors import assignors_named
from millbeck.client.consumer.broker_assigned import ConsumerMembership
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.decoding import ConsumerInterceptor, RecordDecoder
from millbeck.client.consumer.fetched_columns import Columns
from millbeck.client.consumer.fetcher import Fetcher
from millbeck.client.consumer.listener import Callbacks, Partitions, RebalanceCallback, RebalanceListener, call
from millbeck.client.consumer.membership import ClassicGroupMembership, JoinResult
from millbeck.client.consumer.metrics import ConsumerMetrics
from millbeck.client.consumer.offset_finder import EARLIEST, LATEST, Committed, OffsetFetcher
from millbeck.client.consumer.ordered_commits import CommitCallback, OrderedCommits
from millbeck.client.consumer.positions import FetchState, SubscriptionState, TopicPartitionState
from millbeck.client.consumer.record_run import RecordRun
from millbeck.client.errors import ClientClosed, DeserializationFailed, PartitionUnavailable, RequestTimeout
from millbeck.client.lifecycle import LoopBound, merged
from millbeck.client.metadata import TopicView
from millbeck.client.metrics.registry import MetricName
from millbeck.client.retry import Deadline
from millbeck.client.serialization import Deserializer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    InvalidRequest,
    KafkaStorageError,
    LeaderNotAvailable,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import TopicPartition, uuid_text
from millbeck.records.record import Record
from millbeck.records.typevars import K, V
from millbeck.wire.messages.log_offsets import ListOffsetsPartitionResponse

if TYPE_CHECKING:
    from pyarrow import RecordBatch

log = logging.getLogger(__name__)

T = TypeVar("T")

_CLOSE_COMMIT_SECONDS_MAX: Final = 5.0
_CLOSE_SECONDS_MAX: Final = 30.0
_LOOK_SECONDS: Final = 1.0
"""Interval for checking whether partitions have leaders, while no records arrive."""
_NAMED_MAX: Final = 10
_RUN_RECORDS_MAX: Final = 500
"""The number of records that ``async for`` takes from one partition before it continues with the next one."""


class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class GroupMetadata(NamedTuple):
    """The membership that offsets are committed with, as a transaction needs it."""

    group_id: str
    committer: Committer


class Consumer(LoopBound, Generic[K, V]):
    """The consumer. It is started by its first call inside an event loop; use it as an async context manager, or call
    `close`."""

    def __init__(
        self,
        settings: Mapping[str, object] | ConsumerConfig | None = None,
        *,
        key_deserializer: Deserializer[K] | str | None = None,
        value_deserializer: Deserializer[V] | str | None = None,
        interceptors: Sequence[ConsumerInterceptor] = (),
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        """Settings under Kafka's names, or as keyword arguments: ``group_id="billing"`` is ``group.id``."""
        super().__init__(environment)
        config = settings if isinstance(settings, ConsumerConfig) else ConsumerConfig.parse(merged(settings, named))
        self.config = config
        assignors_named(config.assignors)  # what cannot be loaded is refused here, not with the first rebalance
        self._decoder = RecordDecoder(config, key_deserializer, value_deserializer, interceptors)
        self._before_start: list[Callable[[], None]] = []
        self._is_assigned = False
        """Whether partitions were assigned by `assign`, perhaps none."""
        self._missing: set[str] = set()
        """The subscribed topics that do not exist."""
        self._changed = asyncio.Event()
        self._errors: list[ApiError] = []
        self._topics: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._listener = RebalanceListener()
        self._membership: ClassicGroupMembership | ConsumerMembership | None = None
        self._is_polling = False
        self._run: RecordRun | None = None
        self._group_waits = False
        self.is_iterated_elsewhere = False
        """Whether another thread iterates over the runs, which then must not be ended in between."""
        self._unavailable_since_s: float | None = None
        self._is_closing = False
        self._is_closed = False
        self._committing: asyncio.Task[None] | None = None
        self._positions = SubscriptionState()

    def _start(self) -> None:
        config = self.config
        self._cluster = Cluster(
            self.environment, config, creates_topics=config.allow_auto_create_topics, kind="consumer"
        )
        self._cluster.member_id = lambda: "" if self._membership is None else self._membership.member_id
        self._metrics = ConsumerMetrics(self._cluster.metrics, self._positions, reads_committed=config.reads_committed)
        self._commit_due_s = self._loop.time() + config.auto_commit_interval_ms / 1000
        self._commits = OrderedCommits(self._cluster.spawn)
        self._finder = OffsetFetcher(
            self._cluster,
            config,
            self._positions,
            find_committed=self._find_committed,
            on_change=self._on_positions,
            on_error=self._report,
        )
        self._fetcher = Fetcher(
            self._cluster,
            config,
            self._positions,
            on_arrival=self._changed.set,
            on_error=self._report,
            on_out_of_range=self._out_of_range,
            metrics=self._metrics,
        )
        self._cluster.on_update += [self._match_pattern, self._warn_of_missing]
        self._cluster.start_upkeep()
        postponed, self._before_start = self._before_start, []
        for call_before in postponed:
            call_before()

    @property
    def is_closed(self) -> bool:
        """Whether the consumer is closed, or closes."""
        return self._is_closing or self._is_closed

    @property
    def returns_bytes(self) -> bool:
        """Whether records have their keys and values as they were stored: there are no deserializers and no
        interceptors."""
        return self._decoder.is_plain

    def _is_early(self) -> bool:
        """Whether no event loop is running yet; the call then takes effect when the consumer starts."""
        return not self.is_started and asyncio._get_running_loop() is None

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
        if error is not None:
            self.give_back()
        await self.close()

    def give_back(self) -> None:
        """Called when the program did not finish the record returned by ``async for``: it is not committed, and is read
        again."""
        if self._run is not None:
            self._run.end(repeats_current=True)
            self._run = None

    # assignment and subscription

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions without a group; excludes `subscribe`."""
        self._check_open()
        if self._membership is not None or self._topics or self._pattern is not None:
            raise InvalidRequest("the consumer is subscribed to topics: unsubscribe before assigning partitions")
        if self._is_early():
            self._before_start.append(partial(self.assign, list(partitions)))
            return
        self._enter()
        self._is_assigned = True
        wanted = list(dict.fromkeys(TopicPartition(*partition) for partition in partitions))
        self.cluster.set_topics(list(dict.fromkeys(partition.topic for partition in wanted)))
        self._set_partitions(wanted)

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Subscribe to topics, or to those whose whole name matches the pattern, as a member of the group.

        The methods of ``listener``, or the callbacks, run inside `poll`: ``on_revoked`` while this member still owns
        the partitions, so that it can commit; ``on_lost`` when it no longer does, or ``on_revoked`` if ``on_lost`` is
        not given.
        """
        self._check_open()
        if self.config.group_id is None:
            raise InvalidRequest("subscribing needs a group.id; assign partitions to read without a group")
        if self._membership is None and len(self._positions):
            raise InvalidRequest("the consumer has partitions assigned by assign(): it cannot subscribe as well")
        wanted = list(dict.fromkeys([topics] if isinstance(topics, str) else topics))
        if not wanted and pattern is None:
            raise InvalidRequest("no topics to subscribe to")
        self._listener = listener or Callbacks(on_assigned, on_revoked, on_lost)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._topics = wanted
        if self._is_early():
            self._before_start.append(self._subscribed)
        else:
            self._enter()
            self._subscribed()

    def _subscribed(self) -> None:
        self.cluster.wants_all_topics = self._pattern is not None
        self.cluster.set_topics(self._topics)
        if self._membership is None:
            self._membership = self._new_membership()
            self._membership.idle.record_at_hand = self._record_at_hand
            self._membership.on_heartbeat = lambda: self._metrics.heartbeat(self._loop.time())
        self._membership.request_join("the subscription changed")
        self._match_pattern()
        self.cluster.request_refresh()

    def _new_membership(self) -> ClassicGroupMembership | ConsumerMembership:
        if not self.config.is_broker_assigning:
            return ClassicGroupMembership(self.cluster, self.config, on_change=self._group_changed)
        return ConsumerMembership(
            self.cluster,
            self.config,
            pattern=lambda: None if self._pattern is None else self._pattern.pattern,
            on_change=self._group_changed,
        )

    def enforce_rebalance(self, reason: str = "the program asked for it") -> None:
        """Have the group rebalance with the next poll. Has no effect when the broker assigns: it does so on its own."""
        self._check_open()
        self._enter()
        if self._membership is None:
            raise InvalidRequest("enforce_rebalance needs a subscription")
        if not self.config.is_broker_assigning:
            self._membership.request_join(reason)

    async def unsubscribe(self) -> None:
        """Leave the group and stop reading."""
        self._enter()
        if self._membership is not None:
            await self._revoke(self._positions.partitions)
            await self._membership.leave("the consumer unsubscribed")
            self._membership = None
        self._topics = []
        self._pattern = None
        self._is_assigned = False
        self.cluster.wants_all_topics = False
        self._set_partitions([])

    @property
    def assignment(self) -> Partitions:
        """The partitions assigned now, sorted."""
        return sorted(self._positions.partitions)

    @property
    def subscription(self) -> list[str]:
        return list(self._topics)

    def _set_partitions(self, partitions: Partitions) -> None:
        if self._run is not None and self._run.state.partition not in partitions:
            self._end_run()
        begins = FetchState.COMMITTED_OFFSET if self.config.group_id is not None else FetchState.RESET
        self._positions.assign(partitions, begins)
        self.cluster.add_topics(list(dict.fromkeys(partition.topic for partition in partitions)))
        self._on_positions()

    def _match_pattern(self) -> None:
        """Update the topics of a pattern subscription from the metadata."""
        if self._pattern is None or self._membership is None or self.config.is_broker_assigning:
            return
        matching = sorted(
            name
            for name, topic in self.cluster.metadata.topics.items()
            if self._pattern.fullmatch(name) and not (topic.is_internal and self.config.exclude_internal_topics)
        )
        if matching != self._topics:
            self._topics = matching
            self._membership.request_join("the topics that match the pattern changed")

    def _warn_of_missing(self) -> None:
        """Say once of each subscribed topic that it does not exist."""
        errors = self.cluster.metadata.errors
        missing = {name for name in self._topics if isinstance(errors.get(name), UnknownTopicOrPartition)}
        for name in sorted(missing - self._missing):
            log.warning("there is no topic %s; it is read once it has been created", name)
        self._missing = missing

    # positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue from this offset with the next poll."""
        if offset < 0:
            raise InvalidRequest(f"{offset} is not a valid offset")
        self._state(partition).seek(offset)
        self._end_run_of(partition)
        self._on_positions()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Seek to the first record of these partitions, or of all assigned ones."""
        self._reset_to(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._reset_to(partitions, LATEST)

    def _reset_to(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        for partition in list(partitions) or self.assignment:
            self._state(partition).reset(timestamp)
            self._end_run_of(partition)
        self._on_positions()

    def pause(self, *partitions: TopicPartition) -> None:
        """Stop returning records of these partitions until `resume`; they stay assigned."""
        for partition in partitions:
            self._state(partition).is_paused = True
            self._end_run_of(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._state(partition).is_paused = False
        self._on_positions()
        self._changed.set()

    @property
    def paused(self) -> Partitions:
        return [state.partition for state in self._positions if state.is_paused]

    async def position(self, partition: TopicPartition, *, timeout_s: float | None = None) -> int:
        """The offset of the next record that `poll` returns; waits until it is known."""
        state = self._state(partition)
        deadline = Deadline(self._timeout_s(timeout_s))
        while not state.has_position:
            self._raise_errors()
            if deadline.has_passed:
                raise RequestTimeout(f"the position of {partition} was not found in time")
            await self._wait_for_change(deadline)
        return self._consumed_offset(state)

    def lag(self, partition: TopicPartition) -> int | None:
        """The number of offsets between the position and the partition's end as of the last fetch; None if unknown."""
        state = self._state(partition)
        end = state.end_offset(reads_committed=self.config.reads_committed)
        return None if end < 0 or not state.has_position else max(0, end - self._consumed_offset(state))

    def end_as_fetched(self, partition: TopicPartition, *, reads_committed: bool) -> int:
        """The high watermark of a partition as of the last fetch, or its last stable offset; -1 if unknown."""
        return self._state(partition).end_offset(reads_committed=reads_committed)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each timestamp in milliseconds; None if there is none."""
        found = await self._list_offsets(timestamps, timeout_s)
        return {
            partition: (
                None if answer.offset < 0 else OffsetAndTimestamp(answer.offset, answer.timestamp, answer.leader_epoch)
            )
            for partition, answer in found.items()
        }

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        found = await self._list_offsets(dict.fromkeys(partitions, EARLIEST), timeout_s)
        return {partition: answer.offset for partition, answer in found.items()}

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, int]:
        """The end offset of each partition; with read_committed, the last stable offset."""
        found = await self._list_offsets(dict.fromkeys(partitions, LATEST), timeout_s)
        return {partition: answer.offset for partition, answer in found.items()}

    async def _list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
        self._check_open()
        timestamps = {TopicPartition(*partition): timestamp for partition, timestamp in timestamps.items()}
        patience = Deadline(self.config.request_timeout_ms / 1000 - _LOOK_SECONDS)

        async def attempt(deadline: Deadline) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
            try:
                return await self._finder.list_offsets(timestamps, deadline)
            except (LeaderNotAvailable, KafkaStorageError) as error:
                if timeout_s is None and patience.has_passed:
                    raise PartitionUnavailable(str(error)) from error
                raise

        return await self.cluster.retrying(attempt, timeout_s=timeout_s)

    async def topic(self, name: str, *, timeout_s: float | None = None) -> TopicView:
        """A topic's partitions and their leaders."""
        return await self.cluster.topic(name, timeout_s=self._timeout_s(timeout_s))

    def metrics(self) -> dict[MetricName, float]:
        """The values of all metrics now, under the names of Kafka's Java clients."""
        return self.cluster.metrics.read()

    async def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        """The id under which brokers collect this client's metrics (KIP-714); raises `UnsupportedByBroker` if they do
        not."""
        return uuid_text(await self.cluster.client_instance_id(self._timeout_s(timeout_s)))

    # records

    async def poll(
        self,
        *,
        timeout_s: float = 1.0,
        max_records: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
    ) -> dict[TopicPartition, list[Record[K, V]]]:
        """Return records by partition as soon as there are some; none after ``timeout_s``.

        With ``partitions`` only records of these; those of others stay buffered.
        Raises errors that keep partitions from being read: `PartitionUnavailable` when none of them has had a leader
        for ``request.timeout.ms``; reading continues once they have one and the program polls again.
        """
        self._end_run()
        count_max = max_records or self.config.max_poll_records
        wanted = None if partitions is None else frozenset(TopicPartition(*partition) for partition in partitions)
        return await self._take_when_there(lambda: self._take(count_max, wanted), timeout_s) or {}

    async def poll_columns(
        self, *, timeout_s: float = 1.0, with_headers: bool = False
    ) -> dict[TopicPartition, list[RecordBatch]]:
        """Like `poll`, but returns Arrow record batches, with no object per record; needs millbeck[columns].

        Their columns are key, value, topic, partition, offset, timestamp and timestampType, and headers if asked for.
        The responses of brokers are not split: up to ``max.partition.fetch.bytes`` come from each partition.
        """
        from millbeck.client.columns.arrow import record_batch

        if not self.returns_bytes:
            raise InvalidRequest("poll_columns returns bytes: deserializers and interceptors have no effect on columns")
        self._end_run()
        found = await self._take_when_there(lambda: self._take_columns(with_headers), timeout_s)
        return {
            partition: [record_batch(columns, *partition, with_headers) for columns in parts if columns.row_count]
            for partition, parts in (found or {}).items()
        }

    def _take_columns(self, with_headers: bool) -> dict[TopicPartition, list[Columns]]:
        taken: dict[TopicPartition, list[Columns]] = {}
        now_s = self._loop.time()
        for state in list(self._positions):
            if not state.is_fetchable or not state.has_records:
                continue
            buffered_bytes = state.buffered_bytes
            try:
                found = state.take_columns(with_headers=with_headers)
            except ApiError as error:
                if taken:
                    # The error is raised again by the next call; these records are valid.
                    break
                raise type(error)(f"{state.partition} at offset {state.position}: {error}") from error
            count = sum(columns.row_count for columns in found)
            if count:
                taken[state.partition] = found
                self._metrics.consumed(state.partition.topic, count, buffered_bytes - state.buffered_bytes, now_s)
        self._fetcher.wake()
        return taken

    async def __aiter__(self) -> AsyncIterator[Record[K, V]]:
        self._enter()
        is_plain = self._decoder.is_plain
        while True:
            run = await self.next_run()
            if run is None:
                return
            if is_plain:
                for record in run:
                    run.current = record
                    yield cast("Record[K, V]", record)
            else:
                for record in run:
                    run.current = record
                    yield self.decoded(run, record)

    async def next_run(
        self,
        accepts: Callable[[TopicPartition], bool] | None = None,
        count_max: int = _RUN_RECORDS_MAX,
        *,
        timeout_s: float = math.inf,
    ) -> RecordRun | None:
        """The next records for ``async for``, all of one partition; None after ``timeout_s``, or when the consumer is
        closed.

        ``accepts`` says from which partitions; records of the others stay buffered.
        """
        self._end_run()
        self._run = await self._take_when_there(lambda: self._take_run(accepts, count_max), timeout_s)
        return self._run

    async def _take_when_there(self, take: Callable[[], T | None], timeout_s: float) -> T | None:
        """Wait until ``take`` returns a result; None after ``timeout_s``, or when the consumer closes."""
        if asyncio._get_running_loop() is not self._bound_to:
            self._enter()
        self._check_open()
        if self._membership is None and not self._is_assigned:
            raise InvalidRequest("there is nothing to read: call subscribe() or assign() first")
        if self._is_polling:
            raise InvalidRequest("poll() is already running: a consumer allows one caller at a time")
        self._is_polling = True
        try:
            deadline = Deadline(timeout_s)
            self._metrics.polled(self._loop.time())
            self._commit_when_due()
            while not self._is_closing:
                await self._follow_group()
                self._raise_errors()
                self._finder.wake()
                found = take()
                if found or deadline.has_passed:
                    return found
                self._check_available()
                await self._wait_for_change(Deadline(min(deadline.remaining_s, _LOOK_SECONDS)))
            return None
        finally:
            self._is_polling = False

    def _end_run(self) -> None:
        """Put back the records that ``async for`` has not returned yet."""
        run, self._run = self._run, None
        if run is not None:
            run.end()

    def _end_run_of(self, partition: TopicPartition) -> None:
        if self._run is not None and self._run.state.partition == partition:
            self._run.end()

    def _take_run(self, accepts: Callable[[TopicPartition], bool] | None, count_max: int) -> RecordRun | None:
        """The next records of one partition, which then has to wait for the other partitions."""
        for state in list(self._positions):
            if not state.is_fetchable or not state.has_records:
                continue
            if accepts is not None and not accepts(state.partition):
                continue
            start_offset = state.position
            records = self._taken(state, min(self.config.max_poll_records, count_max))
            if records:
                self._positions.rotate(state.partition)
                self._fetcher.wake()
                return RecordRun(state, records, start_offset)
        return None

    def decoded(self, run: RecordRun, record: Record) -> Record[K, V]:
        """Decode a record of a run for the program."""
        try:
            return cast("Record[K, V]", self._decoder.decode(record))
        except DeserializationFailed:
            run.end(repeats_current=True)
            self._run = None
            raise

    def _taken(self, state: TopicPartitionState, count_max: int) -> list[Record]:
        buffered_bytes = state.buffered_bytes
        try:
            records = state.take(count_max)
            self._metrics.consumed(
                state.partition.topic, len(records), buffered_bytes - state.buffered_bytes, self._loop.time()
            )
            return records
        except ApiError as error:
            raise type(error)(f"{state.partition} at offset {state.position}: {error}") from error

    def partitions_without_leader(self) -> list[TopicPartition]:
        """The assigned partitions without a leader at the moment. The others are still read."""
        return self.cluster.metadata.without_leader(state.partition for state in self._positions)

    def _check_available(self) -> None:
        """Raise `PartitionUnavailable` only if all partitions lack a leader; otherwise the others are read."""
        missing = self.partitions_without_leader()
        now_s = self._loop.time()
        if not missing or len(missing) < len(self._positions):
            self._unavailable_since_s = None
        elif self._unavailable_since_s is None:
            self._unavailable_since_s = now_s
        elif now_s - self._unavailable_since_s >= self.config.request_timeout_ms / 1000 - _LOOK_SECONDS:
            seconds, self._unavailable_since_s = now_s - self._unavailable_since_s, None
            names = ", ".join(map(str, missing[:_NAMED_MAX])) + (", …" if len(missing) > _NAMED_MAX else "")
            raise PartitionUnavailable(f"{names}: no leader for {seconds:.0f} s, so reads and writes fail")

    def _take(
        self, count_max: int, wanted: frozenset[TopicPartition] | None
    ) -> dict[TopicPartition, list[Record[K, V]]]:
        taken: dict[TopicPartition, list[Record[K, V]]] = {}
        for state in list(self._positions):
            if count_max <= 0:
                break
            if not state.is_fetchable or not state.has_records:
                continue
            if wanted is not None and state.partition not in wanted:
                continue
            try:
                records = self._decoded_all(state, self._taken(state, count_max))
            except ApiError:
                if taken:
                    # The error is raised again by the next poll; these records are valid.
                    break
                raise
            if records:
                taken[state.partition] = records
                count_max -= len(records)
                self._positions.rotate(state.partition)
        self._fetcher.wake()
        return taken

    def _decoded_all(self, state: TopicPartitionState, records: list[Record]) -> list[Record[K, V]]:
        """Decode the records before the first that cannot be decoded; raises its error only if it is the first of
        all."""
        if self._decoder.is_plain:
            return cast("list[Record[K, V]]", records)
        decoded: list[Record[K, V]] = []
        for index, record in enumerate(records):
            try:
                decoded.append(self._decoder.decode(record))
            except DeserializationFailed:
                state.put_back(records[index:])
                if not decoded:
                    raise
                break
        return decoded

    async def _wait_for_change(self, deadline: Deadline) -> None:
        try:
            async with asyncio.timeout(deadline.remaining_s):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()

    def _on_positions(self) -> None:
        self._finder.wake()
        self._fetcher.wake()
        self._changed.set()

    def _out_of_range(self, state: TopicPartitionState, offset: int) -> None:
        if self.config.auto_offset_reset == "none":
            self._report(OffsetOutOfRange(f"{state.partition} has no offset {offset}, and auto.offset.reset is none"))
            return
        log.info("%s has no offset %d; reset to %s", state.partition, offset, self.config.auto_offset_reset)
        state.reset()
        self._on_positions()

    # the group

    def _group_changed(self) -> None:
        """Called when the group needs this member: ``async for`` turns to it after the current record."""
        self._group_waits = True
        self._changed.set()
        if self._run is not None and not self.is_iterated_elsewhere:
            self._run.end()

    @property
    def group_waits(self) -> bool:
        """Whether the group needs this member, which `poll` and `next_run` see to."""
        return self._group_waits

    async def _follow_group(self) -> None:
        self._group_waits = False
        membership = self._membership
        if membership is None:
            return
        membership.idle.polled()
        if membership.is_lost:
            membership.is_lost = False
            await self._on_partitions_lost()
        if membership.failure is not None:
            raise membership.failure
        has_subscription = bool(self._topics) or (self._pattern is not None and self.config.is_broker_assigning)
        if membership.needs_join and not membership.is_joining and has_subscription:
            if not membership.is_cooperative:
                await self._revoke(self._positions.partitions)
            elif self.config.enable_auto_commit and self.assignment:
                await self._commit_before_revocation()
            self._metrics.rebalance_began(self._loop.time())
            membership.begin_join(self._topics, self._positions.partitions)
        joined = membership.take_joined()
        if joined is not None:
            await self._take_over(membership, joined)

    async def _take_over(self, membership: ClassicGroupMembership | ConsumerMembership, joined: JoinResult) -> None:
        assigned = list(dict.fromkeys(joined.partitions))
        owned = self._positions.partitions
        revoked = [partition for partition in owned if partition not in assigned]
        added = [partition for partition in assigned if partition not in owned]
        if revoked:
            await self._revoke(revoked)
            # Only after the revocation may they be assigned to others, so another rebalance is needed.
            membership.request_join("partitions were revoked")
        self._set_partitions(assigned)
        membership.owns(assigned)
        self._metrics.rebalanced(self._loop.time())
        await call(self._listener.on_assigned(added))

    async def _revoke(self, partitions: Partitions) -> None:
        if not partitions:
            return
        if self.config.enable_auto_commit:
            await self._commit_before_revocation()
        await call(self._listener.on_revoked(partitions))
        self._set_partitions([partition for partition in self._positions.partitions if partition not in partitions])

    async def _on_partitions_lost(self) -> None:
        partitions = self._positions.partitions
        self._set_partitions([])
        if partitions:
            await call(self._listener.on_lost(partitions))

    # committing

    async def commit(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None, *, timeout_s: float | None = None
    ) -> None:
        """Commit these offsets, or the positions of all partitions. Raises the coordinator's error."""
        self._check_open()
        self._enter()
        wanted = self._committable(offsets)
        await self._commits.drain()
        await self._commit(wanted, self._timeout_s(timeout_s))

    def commit_nowait(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None,
        *,
        callback: CommitCallback | None = None,
        timeout_s: float | None = None,
    ) -> asyncio.Future[None]:
        """Like `commit`, in the background: returns a future at once.

        Commits take effect in order, and `commit` and `close` wait for them. ``callback`` gets the offsets, and the
        error if the commit fails; without a callback a failure is logged.
        """
        self._check_open()
        self._enter()
        wanted = self._committable(offsets)
        limit_s = self._timeout_s(timeout_s)
        return self._commits.submit(wanted, lambda: self._commit(wanted, limit_s), callback)

    def _committable(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None
    ) -> dict[TopicPartition, CommittedOffset]:
        if offsets is None:
            return self.consumed()
        wanted = {
            TopicPartition(*partition): CommittedOffset(offset) if isinstance(offset, int) else offset
            for partition, offset in offsets.items()
        }
        for partition, entry in wanted.items():
            if entry.offset < 0:
                raise InvalidRequest(f"{entry.offset} is not an offset that can be committed for {partition}")
        return wanted

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """The group's committed offsets; None for partitions without one."""
        self._check_open()
        wanted = [TopicPartition(*partition) for partition in partitions]
        found = await commits.committed(self.cluster, self._group_id(), wanted, timeout_s=self._timeout_s(timeout_s))
        return {partition: found.get(partition) for partition in wanted}

    def consumed(self) -> dict[TopicPartition, CommittedOffset]:
        """The positions of all partitions, for a commit or a transaction."""
        return {
            state.partition: CommittedOffset(self._consumed_offset(state), state.offset_epoch)
            for state in self._positions
            if state.has_position
        }

    def _consumed_offset(self, state: TopicPartitionState) -> int:
        run = self._run
        return run.consumed_offset if run is not None and run.state is state else state.position

    def group_metadata(self) -> GroupMetadata:
        """The group and this member, for `Producer.send_offsets`."""
        return GroupMetadata(self._group_id(), self._committer())

    async def _commit(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_s: float) -> None:
        if not offsets:
            return
        asked_s = self._loop.time()
        try:
            await commits.commit(self.cluster, self._group_id(), self._committer, offsets, timeout_s=timeout_s)
            self._metrics.committed(asked_s, self._loop.time())
            self._decoder.committed(offsets)
        except ApiError as error:
            if self._membership is not None:
                self._membership.note(error)
            raise

    def _committer(self) -> Committer:
        membership = self._membership
        if membership is None:
            return Committer()
        return Committer(membership.member_id, membership.generation, self.config.group_instance_id)

    def _commit_when_due(self) -> None:
        if not self.config.enable_auto_commit or self._loop.time() < self._commit_due_s or self._committing is not None:
            return
        membership = self._membership
        if membership is not None and (not membership.is_member or membership.is_joining):
            return
        self._commit_due_s = self._loop.time() + self.config.auto_commit_interval_ms / 1000
        offsets = self.consumed()
        if offsets:
            self._committing = self.cluster.spawn(self._commit_quietly(offsets, self._timeout_s(None)))
            self._committing.add_done_callback(self._committed)

    def _committed(self, _: asyncio.Task[None]) -> None:
        self._committing = None

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_s: float) -> None:
        """Auto-commit: a failure is only logged, since the next commit includes these offsets."""
        try:
            await self._commit(offsets, timeout_s)
        except ApiError as error:
            log.warning("auto-commit of group %s failed: %s", self.config.group_id, error)

    async def _commit_before_revocation(self) -> None:
        membership = self._membership
        if membership is not None and membership.is_member:
            await self._commit_quietly(self.consumed(), _CLOSE_COMMIT_SECONDS_MAX)

    async def _find_committed(self, partitions: Partitions, deadline: Deadline) -> Committed:
        found = await commits.committed(
            self.cluster,
            self._group_id(),
            partitions,
            timeout_s=deadline.remaining_s,
            require_stable=True,
        )
        return {partition: (entry.offset, entry.leader_epoch) for partition, entry in found.items()}

    # closing and checks

    async def close(self, timeout_s: float = _CLOSE_SECONDS_MAX, *, leaves_group: bool | None = None) -> None:
        """Commit if auto-commit is enabled, leave the group, and stop all tasks; the first two for up to ``timeout_s``.

        A static member stays in the group by default and a dynamic one leaves it; ``leaves_group`` says otherwise
        (KIP-1092). A member that stays keeps its partitions until ``session.timeout.ms`` has passed.
        """
        if self._is_closing:
            return
        if not self.is_started:
            self._is_closing = self._is_closed = True
            return
        self._enter()
        self._is_closing = True
        self._changed.set()
        try:
            async with asyncio.timeout(timeout_s):
                await self._commits.drain()
                if self._membership is not None:
                    await self._revoke(self._positions.partitions)
                    await self._membership.leave("the consumer was closed", leaves_group)
                elif self.config.enable_auto_commit:
                    await self._commit_quietly(self.consumed(), _CLOSE_COMMIT_SECONDS_MAX)
        except TimeoutError:
            log.warning("the consumer did not commit and leave group %s in %s s", self.config.group_id, timeout_s)
        finally:
            self._is_closed = True
            await self.cluster.close()

    def _state(self, partition: TopicPartition) -> TopicPartitionState:
        state = self._positions.get(TopicPartition(*partition))
        if state is None:
            raise InvalidRequest(f"{partition} is not assigned to this consumer")
        return state

    def _group_id(self) -> str:
        if self.config.group_id is None:
            raise InvalidRequest("committed offsets need a group; set group.id")
        return self.config.group_id

    def _timeout_s(self, timeout_s: float | None) -> float:
        return self.config.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s

    def _record_at_hand(self) -> Record | None:
        return None if self._run is None else self._run.current

    def _report(self, error: ApiError) -> None:
        self._errors = [error]
        self._changed.set()

    def _raise_errors(self) -> None:
        if self._errors:
            raise self._errors.pop()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the consumer is closed")
