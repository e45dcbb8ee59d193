"""`Consumer`: reads records, alone or as a member of a group.

    async with Consumer(real_environment(), {"bootstrap.servers": "127.0.0.1:9092", "group.id": "billing"}) as consumer:
        consumer.subscribe(["orders"])
        while True:
            for partition, records in (await consumer.poll(timeout_s=1.0)).items():
                ...

`poll` is where everything the program can notice happens: records come out of it, partitions change hands inside it
(with the callbacks given to `subscribe`), and errors are raised from it. Fetching, heartbeats and joining go on beside
the program. With ``enable.auto.commit`` a poll commits what the polls before it returned.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Final, NamedTuple, Self

from millbeck.client.cluster import Cluster
from millbeck.client.config import Value
from millbeck.client.consumer import commits
from millbeck.client.consumer.broker_assigned import BrokerAssigned
from millbeck.client.consumer.commits import CommittedOffset, Committer
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.client.consumer.fetcher import Fetcher
from millbeck.client.consumer.membership import Joined, Membership
from millbeck.client.consumer.offset_finder import EARLIEST, LATEST, Committed, OffsetFinder
from millbeck.client.consumer.positions import Missing, PartitionState, Positions
from millbeck.client.errors import ClientClosed, RequestTimeout
from millbeck.client.metadata import TopicView
from millbeck.client.retry import Deadline
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidRequest, OffsetOutOfRange
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record
from millbeck.wire.messages.list_offsets import ListOffsetsPartitionResponse

log = logging.getLogger(__name__)

Partitions = list[TopicPartition]
RebalanceCallback = Callable[[Partitions], Awaitable[None] | None]

_CLOSE_COMMIT_SECONDS_MAX: Final = 5.0


class OffsetAndTimestamp(NamedTuple):
    offset: int
    timestamp: int
    leader_epoch: int


class _Callbacks(NamedTuple):
    on_assigned: RebalanceCallback | None = None
    on_revoked: RebalanceCallback | None = None
    on_lost: RebalanceCallback | None = None


class Consumer:
    """Make it inside a running loop; use it as an async context manager, or call `close`."""

    def __init__(self, environment: Environment, settings: Mapping[str, Value] | ConsumerConfig) -> None:
        config = settings if isinstance(settings, ConsumerConfig) else ConsumerConfig.parse(settings)
        self.config = config
        self.cluster = Cluster(environment, config, creates_topics=config.allow_auto_create_topics)
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._errors: list[ApiError] = []
        self._topics: list[str] = []
        self._pattern: re.Pattern[str] | None = None
        self._callbacks = _Callbacks()
        self._membership: Membership | BrokerAssigned | None = None
        self._is_polling = False
        self._is_closing = False
        self._is_closed = False
        self._commit_due_s = self._loop.time() + config.auto_commit_interval_ms / 1000
        self._committing: asyncio.Task[None] | None = None
        self._positions = Positions()
        self._finder = OffsetFinder(
            self.cluster,
            config,
            self._positions,
            find_committed=self._find_committed,
            on_change=self._on_positions,
            on_error=self._report,
        )
        self._fetcher = Fetcher(
            self.cluster,
            config,
            self._positions,
            on_arrival=self._changed.set,
            on_error=self._report,
            on_out_of_range=self._out_of_range,
        )
        self.cluster.on_update.append(self._match_pattern)
        self.cluster.start_upkeep()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # what is read

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, whoever else does; not together with `subscribe`."""
        self._check_open()
        if self._membership is not None:
            raise InvalidRequest("this consumer is subscribed: unsubscribe before assigning partitions")
        wanted = list(dict.fromkeys(TopicPartition(*partition) for partition in partitions))
        self.cluster.want_only(list(dict.fromkeys(partition.topic for partition in wanted)))
        self._set_partitions(wanted)

    def subscribe(
        self,
        topics: Iterable[str] = (),
        *,
        pattern: str | None = None,
        on_assigned: RebalanceCallback | None = None,
        on_revoked: RebalanceCallback | None = None,
        on_lost: RebalanceCallback | None = None,
    ) -> None:
        """Read these topics, or those whose whole name matches the pattern, as a member of the group.

        The callbacks run inside `poll`: ``on_revoked`` while the partitions are still this member's, so that it can
        commit; ``on_lost`` when they no longer are, and ``on_revoked`` stands in for it when it is not given.
        """
        self._check_open()
        if self.config.group_id is None:
            raise InvalidRequest("subscribing needs a group.id; assign partitions to read without a group")
        if self._membership is None and len(self._positions):
            raise InvalidRequest("partitions are assigned to this consumer: it cannot subscribe as well")
        self._callbacks = _Callbacks(on_assigned, on_revoked, on_lost)
        self._pattern = None if pattern is None else re.compile(pattern)
        self._topics = list(dict.fromkeys(topics))
        self.cluster.wants_all_topics = self._pattern is not None
        if not self._topics and self._pattern is None:
            raise InvalidRequest("there is nothing to subscribe to")
        self.cluster.want_only(self._topics)
        if self._membership is None:
            self._membership = self._new_membership()
        self._membership.request_join("the subscription changed")
        self._match_pattern()
        self.cluster.refresh_soon()

    def _new_membership(self) -> Membership | BrokerAssigned:
        if not self.config.is_broker_assigning:
            return Membership(self.cluster, self.config, on_change=self._changed.set)
        return BrokerAssigned(
            self.cluster,
            self.config,
            pattern=lambda: None if self._pattern is None else self._pattern.pattern,
            on_change=self._changed.set,
        )

    async def unsubscribe(self) -> None:
        """Leave the group and read nothing."""
        if self._membership is not None:
            await self._revoke(self._positions.partitions)
            await self._membership.leave("the consumer unsubscribed")
            self._membership = None
        self._topics = []
        self._pattern = None
        self.cluster.wants_all_topics = False
        self._set_partitions([])

    @property
    def assignment(self) -> Partitions:
        """The partitions read at the moment, sorted."""
        return sorted(self._positions.partitions)

    @property
    def subscription(self) -> list[str]:
        return list(self._topics)

    def _set_partitions(self, partitions: Partitions) -> None:
        begins = Missing.COMMITTED_OFFSET if self.config.group_id is not None else Missing.RESET
        self._positions.assign(partitions, begins)
        self.cluster.want_topics(list(dict.fromkeys(partition.topic for partition in partitions)))
        self._on_positions()

    def _match_pattern(self) -> None:
        """A subscription by pattern follows the topics there are."""
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

    # positions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on from this offset with the next poll."""
        if offset < 0:
            raise InvalidRequest(f"{offset} is not an offset")
        self._state(partition).seek(offset)
        self._on_positions()

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """These partitions, or all assigned ones, from their first record on."""
        self._reset_to(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._reset_to(partitions, LATEST)

    def _reset_to(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        for partition in list(partitions) or self.assignment:
            self._state(partition).reset(timestamp)
        self._on_positions()

    def pause(self, *partitions: TopicPartition) -> None:
        """Return nothing of these until `resume`; they stay assigned."""
        for partition in partitions:
            self._state(partition).is_paused = True

    def resume(self, *partitions: TopicPartition) -> None:
        for partition in partitions:
            self._state(partition).is_paused = False
        self._on_positions()
        self._changed.set()

    @property
    def paused(self) -> Partitions:
        return [state.partition for state in self._positions if state.is_paused]

    async def position(self, partition: TopicPartition, *, timeout_s: float | None = None) -> int:
        """The offset of the next record `poll` returns, waited for when it is not known yet."""
        state = self._state(partition)
        deadline = Deadline(self._timeout_s(timeout_s))
        while not state.has_position:
            self._raise_errors()
            if deadline.has_passed:
                raise RequestTimeout(f"the position of {partition} was not found in time")
            await self._wait_for_change(deadline)
        return state.position

    def lag(self, partition: TopicPartition) -> int | None:
        """How many offsets the partition's end was ahead when it was last fetched; None when that is not known."""
        state = self._state(partition)
        end = state.last_stable_offset if self.config.reads_committed else state.high_watermark
        return None if end < 0 or not state.has_position else max(0, end - state.position)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time in milliseconds; None when there is none."""
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
        """Where each partition ends for this consumer: with read_committed before the first open transaction."""
        found = await self._list_offsets(dict.fromkeys(partitions, LATEST), timeout_s)
        return {partition: answer.offset for partition, answer in found.items()}

    async def _list_offsets(
        self, timestamps: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> dict[TopicPartition, ListOffsetsPartitionResponse]:
        self._check_open()
        return await self.cluster.retrying(
            lambda deadline: self._finder.list_offsets(timestamps, deadline), timeout_s=timeout_s
        )

    async def topic(self, name: str, *, timeout_s: float | None = None) -> TopicView:
        """A topic's partitions and their leaders."""
        return await self.cluster.topic(name, timeout_s=self._timeout_s(timeout_s))

    # records

    async def poll(
        self, *, timeout_s: float = 1.0, max_records: int | None = None
    ) -> dict[TopicPartition, list[Record]]:
        """Records by partition, as soon as there are some; none when ``timeout_s`` has passed."""
        self._check_open()
        if self._is_polling:
            raise InvalidRequest("poll() is already under way: a consumer serves one reader")
        self._is_polling = True
        try:
            deadline = Deadline(timeout_s)
            self._commit_when_due()
            while True:
                await self._follow_group()
                self._raise_errors()
                self._finder.wake()
                records = self._take(max_records or self.config.max_poll_records)
                if records or deadline.has_passed:
                    return records
                await self._wait_for_change(deadline)
        finally:
            self._is_polling = False

    def _take(self, count_max: int) -> dict[TopicPartition, list[Record]]:
        taken: dict[TopicPartition, list[Record]] = {}
        for state in list(self._positions):
            if count_max <= 0:
                break
            if not state.is_fetchable or not state.has_records:
                continue
            try:
                records = state.take(count_max)
            except ApiError as error:
                if taken:
                    # It comes up again with the next poll; these records are good.
                    break
                raise type(error)(f"{state.partition} at offset {state.position}: {error}") from error
            if records:
                taken[state.partition] = records
                count_max -= len(records)
                self._positions.rotate(state.partition)
        self._fetcher.wake()
        return taken

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

    def _out_of_range(self, state: PartitionState, offset: int) -> None:
        if self.config.auto_offset_reset == "none":
            self._report(OffsetOutOfRange(f"{state.partition} has no offset {offset}, and auto.offset.reset is none"))
            return
        log.info("%s has no offset %d; reset to %s", state.partition, offset, self.config.auto_offset_reset)
        state.reset()
        self._on_positions()

    # the group

    async def _follow_group(self) -> None:
        membership = self._membership
        if membership is None:
            return
        membership.last_poll_s = self._loop.time()
        if membership.is_lost:
            membership.is_lost = False
            await self._lose()
        if membership.failure is not None:
            raise membership.failure
        has_subscription = bool(self._topics) or (self._pattern is not None and self.config.is_broker_assigning)
        if membership.needs_join and not membership.is_joining and has_subscription:
            if not membership.is_cooperative:
                await self._revoke(self._positions.partitions)
            elif self.config.enable_auto_commit and self.assignment:
                await self._commit_before_revocation()
            membership.begin_join(self._topics, self._positions.partitions)
        joined = membership.take_joined()
        if joined is not None:
            await self._take_over(membership, joined)

    async def _take_over(self, membership: Membership | BrokerAssigned, joined: Joined) -> None:
        assigned = list(dict.fromkeys(joined.partitions))
        owned = self._positions.partitions
        revoked = [partition for partition in owned if partition not in assigned]
        added = [partition for partition in assigned if partition not in owned]
        if revoked:
            await self._revoke(revoked)
            # Only now may somebody else get them: the group has to meet again.
            membership.request_join("partitions were given up")
        self._set_partitions(assigned)
        membership.owns(assigned)
        if self._callbacks.on_assigned is not None:
            await _call(self._callbacks.on_assigned, added)

    async def _revoke(self, partitions: Partitions) -> None:
        if not partitions:
            return
        if self.config.enable_auto_commit:
            await self._commit_before_revocation()
        if self._callbacks.on_revoked is not None:
            await _call(self._callbacks.on_revoked, partitions)
        self._set_partitions([partition for partition in self._positions.partitions if partition not in partitions])

    async def _lose(self) -> None:
        partitions = self._positions.partitions
        self._set_partitions([])
        callback = self._callbacks.on_lost or self._callbacks.on_revoked
        if partitions and callback is not None:
            await _call(callback, partitions)

    # committing

    async def commit(
        self, offsets: Mapping[TopicPartition, int | CommittedOffset] | None = None, *, timeout_s: float | None = None
    ) -> None:
        """Commit these offsets, or the position of every partition. Raises what the coordinator says."""
        self._check_open()
        if offsets is None:
            wanted = self._consumed()
        else:
            wanted = {
                TopicPartition(*partition): CommittedOffset(offset) if isinstance(offset, int) else offset
                for partition, offset in offsets.items()
            }
        await self._commit(wanted, self._timeout_s(timeout_s))

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """What the group has committed; None where nothing is."""
        self._check_open()
        wanted = [TopicPartition(*partition) for partition in partitions]
        found = await commits.committed(self.cluster, self._group_id(), wanted, timeout_s=self._timeout_s(timeout_s))
        return {partition: found.get(partition) for partition in wanted}

    def _consumed(self) -> dict[TopicPartition, CommittedOffset]:
        return {
            state.partition: CommittedOffset(state.position, state.offset_epoch)
            for state in self._positions
            if state.has_position
        }

    async def _commit(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_s: float) -> None:
        if not offsets:
            return
        try:
            await commits.commit(self.cluster, self._group_id(), self._committer, offsets, timeout_s=timeout_s)
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
        offsets = self._consumed()
        if offsets:
            self._committing = self.cluster.spawn(self._commit_quietly(offsets, self._timeout_s(None)))
            self._committing.add_done_callback(self._committed)

    def _committed(self, _: asyncio.Task[None]) -> None:
        self._committing = None

    async def _commit_quietly(self, offsets: Mapping[TopicPartition, CommittedOffset], timeout_s: float) -> None:
        """A commit nobody asked for: what goes wrong is told in the log, and the next one makes up for it."""
        try:
            await self._commit(offsets, timeout_s)
        except ApiError as error:
            log.warning("offsets of group %s were not committed: %s", self.config.group_id, error)

    async def _commit_before_revocation(self) -> None:
        membership = self._membership
        if membership is not None and membership.is_member:
            await self._commit_quietly(self._consumed(), _CLOSE_COMMIT_SECONDS_MAX)

    async def _find_committed(self, partitions: Partitions, deadline: Deadline) -> Committed:
        found = await commits.committed(
            self.cluster,
            self._group_id(),
            partitions,
            timeout_s=deadline.remaining_s,
            require_stable=True,
        )
        return {partition: (entry.offset, entry.leader_epoch) for partition, entry in found.items()}

    # the rest

    async def close(self) -> None:
        """Commit if that is automatic, leave the group, end everything."""
        if self._is_closing:
            return
        self._is_closing = True
        try:
            if self._membership is not None:
                await self._revoke(self._positions.partitions)
                await self._membership.leave("the consumer was closed")
            elif self.config.enable_auto_commit:
                await self._commit_quietly(self._consumed(), _CLOSE_COMMIT_SECONDS_MAX)
        finally:
            self._is_closed = True
            await self.cluster.close()

    def _state(self, partition: TopicPartition) -> PartitionState:
        state = self._positions.get(TopicPartition(*partition))
        if state is None:
            raise InvalidRequest(f"{partition} is not assigned to this consumer")
        return state

    def _group_id(self) -> str:
        if self.config.group_id is None:
            raise InvalidRequest("committed offsets belong to a group: set group.id")
        return self.config.group_id

    def _timeout_s(self, timeout_s: float | None) -> float:
        return self.config.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s

    def _report(self, error: ApiError) -> None:
        self._errors = [error]
        self._changed.set()

    def _raise_errors(self) -> None:
        if self._errors:
            raise self._errors.pop()

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the consumer is closed")


async def _call(callback: RebalanceCallback, partitions: Partitions) -> None:
    outcome = callback(partitions)
    if inspect.isawaitable(outcome):
        await outcome
