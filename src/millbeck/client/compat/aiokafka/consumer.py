"""`AIOKafkaConsumer` on millbeck's consumer.

Rebalances take effect, and listeners run, in `start`, `getone`, `getmany` and ``async for``, not between them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from millbeck.client.compat.aiokafka.abc import ConsumerRebalanceListener
from millbeck.client.compat.aiokafka.assignors import RoundRobinPartitionAssignor
from millbeck.client.compat.aiokafka.errors import (
    ConsumerStoppedError,
    IllegalOperation,
    IllegalStateError,
    translating,
)
from millbeck.client.compat.aiokafka.producer import committed_offsets
from millbeck.client.compat.aiokafka.settings import COMMON, arguments, common_settings
from millbeck.client.compat.aiokafka.structs import ConsumerRecord, OffsetAndMetadata, OffsetAndTimestamp
from millbeck.client.consumer import Consumer
from millbeck.client.consumer.listener import Partitions, RebalanceListener
from millbeck.client.retry import Deadline
from millbeck.kernel.ids import TopicPartition
from millbeck.records.record import Record

if TYPE_CHECKING:
    from millbeck.client.consumer.record_run import RecordRun

_DEFAULTS: Final[dict[str, Any]] = {
    **COMMON,
    "client_id": "aiokafka",
    "group_id": None,
    "group_instance_id": None,
    "client_rack": None,
    "key_deserializer": None,
    "value_deserializer": None,
    "fetch_max_wait_ms": 500,
    "fetch_max_bytes": 52_428_800,
    "fetch_min_bytes": 1,
    "max_partition_fetch_bytes": 1_048_576,
    "auto_offset_reset": "latest",
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 5000,
    "check_crcs": True,
    "partition_assignment_strategy": (RoundRobinPartitionAssignor,),
    "max_poll_interval_ms": 300_000,
    "rebalance_timeout_ms": None,
    "session_timeout_ms": 10_000,
    "heartbeat_interval_ms": 3000,
    "consumer_timeout_ms": 200,
    "max_poll_records": None,
    "exclude_internal_topics": True,
    "isolation_level": "read_uncommitted",
}
_SAME: Final = (
    "group_id",
    "group_instance_id",
    "client_rack",
    "fetch_max_wait_ms",
    "fetch_max_bytes",
    "fetch_min_bytes",
    "max_partition_fetch_bytes",
    "auto_offset_reset",
    "auto_commit_interval_ms",
    "check_crcs",
    "max_poll_interval_ms",
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "exclude_internal_topics",
    "isolation_level",
)
_RECORDS_MAX: Final = 1_000_000
_DRIVE_SECONDS: Final = 1.0


class _Listener(RebalanceListener):
    """Calls an aiokafka listener, or none."""

    def __init__(self, listener: ConsumerRebalanceListener | None, assignment: Callable[[], Partitions]) -> None:
        self._listener = listener
        self._assignment = assignment
        self.has_assignment = False

    def on_assigned(self, partitions: Partitions) -> Any:
        self.has_assignment = True
        return None if self._listener is None else self._listener.on_partitions_assigned(set(self._assignment()))

    def on_revoked(self, partitions: Partitions) -> Any:
        return None if self._listener is None else self._listener.on_partitions_revoked(set(partitions))


class _Coordinator:
    """The attributes of aiokafka's coordinator that programs read."""

    def __init__(self, consumer: Consumer[bytes, bytes]) -> None:
        self._consumer = consumer

    @property
    def member_id(self) -> str:
        return self._consumer.group_metadata().committer.member_id


class _Subscription:
    """The attributes of aiokafka's subscription state that programs read."""

    def __init__(self, consumer: Consumer[bytes, bytes]) -> None:
        self._consumer = consumer

    @property
    def topics(self) -> set[str]:
        return set(self._consumer.subscription)


class AIOKafkaConsumer:
    """A consumer with aiokafka's arguments and methods."""

    def __init__(self, *topics: str, **options: Any) -> None:
        self._options = found = arguments("AIOKafkaConsumer", _DEFAULTS, options)
        settings = common_settings(found) | {name.replace("_", "."): found[name] for name in _SAME}
        settings["partition.assignment.strategy"] = [each.name for each in found["partition_assignment_strategy"]]
        settings["enable.auto.commit"] = bool(found["enable_auto_commit"] and found["group_id"] is not None)
        settings["max.poll.records"] = found["max_poll_records"] or _RECORDS_MAX
        with translating():
            self._consumer: Consumer[bytes, bytes] = Consumer(settings)
        self._group_id: str | None = found["group_id"]
        self._coordinator = _Coordinator(self._consumer)
        self._subscription = _Subscription(self._consumer)
        self._listener = _Listener(None, lambda: self._consumer.assignment)
        self._topics: frozenset[str] = frozenset()
        self._pattern: re.Pattern[str] | None = None
        self._run: RecordRun | None = None
        self._left: Iterator[Record[bytes, bytes]] = iter(())
        self._polled_ms: dict[TopicPartition, int] = {}
        self._unsubscribing: asyncio.Task[None] | None = None
        self._is_started = False
        self._before_start: Callable[[], None] = lambda: None
        """What `subscribe` or `assign` has asked for before `start`."""
        if topics:
            self.subscribe(topics)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect to the cluster and, with a subscription in a group, wait for the first assignment."""
        timeout_s = self._options["request_timeout_ms"] / 1000
        with translating():
            try:
                await self._start(Deadline(timeout_s))
            except BaseException:
                await self._consumer.close()
                raise

    async def _start(self, deadline: Deadline) -> None:
        await self._consumer.cluster.refresh(deadline)
        self._is_started = True
        self._before_start()
        if not self._topics and self._pattern is None:
            return
        if self._group_id is None:
            await self._consumer.cluster.refresh(deadline)
            return
        while not self._listener.has_assignment and not self._consumer.is_closed:
            await self._consumer.next_run(_none, timeout_s=_DRIVE_SECONDS)

    async def stop(self) -> None:
        """Commit if enable_auto_commit is set, leave the group, and close."""
        await self._consumer.close()

    # subscription

    def subscribe(
        self,
        topics: Iterable[str] = (),
        pattern: str | None = None,
        listener: ConsumerRebalanceListener | None = None,
    ) -> None:
        """Subscribe to topics or to a pattern; without a group_id, all of their partitions are assigned."""
        names = [topics] if isinstance(topics, str) else list(topics)
        if bool(names) == bool(pattern):
            raise TypeError("Either topics or pattern is required, not both")
        if listener is not None and not isinstance(listener, ConsumerRebalanceListener):
            raise TypeError("listener should be an instance of ConsumerRebalanceListener")
        try:
            self._pattern = None if pattern is None else re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from error
        self._topics = frozenset(names)
        self._listener = _Listener(listener, lambda: self._consumer.assignment)
        self._when_started(lambda: self._subscribe(names, pattern))

    def _when_started(self, action: Callable[[], None]) -> None:
        """Run an action now, or in `start`, because a consumer that was not started makes no connections."""
        if self._is_started:
            action()
        else:
            self._before_start = action

    def _subscribe(self, names: list[str], pattern: str | None) -> None:
        if self._group_id is not None:
            with translating(IllegalStateError):
                self._consumer.subscribe(names, pattern=pattern, listener=self._listener)
            return
        if not self._consumer.assignment:
            self._consumer.assign([])  # there may be no such topic yet
        self._consumer.cluster.wants_all_topics = pattern is not None
        if self._assign_all not in self._consumer.cluster.on_update:
            self._consumer.cluster.on_update.append(self._assign_all)
        self._consumer.cluster.add_topics(names)
        self._consumer.cluster.request_refresh()
        self._assign_all()

    def _assign_all(self) -> None:
        """Without a group: assign all partitions of the subscribed topics that exist."""
        if not self._topics and self._pattern is None:
            return
        known = self._consumer.cluster.metadata.topics
        wanted = [
            TopicPartition(name, number)
            for name, view in known.items()
            if name in self._topics
            or (self._pattern is not None and self._pattern.match(name) and not view.is_internal)
            for number in view.partitions
        ]
        if sorted(wanted) != self._consumer.assignment:
            self._consumer.assign(wanted)
            # Also those that do not exist yet, so that they are found when they do.
            self._consumer.cluster.add_topics(sorted(self._topics))

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        wanted = [TopicPartition(*partition) for partition in partitions]
        if self._topics or self._pattern is not None:
            raise IllegalStateError("the consumer is subscribed: unsubscribe before assigning partitions")
        self._when_started(lambda: self._consumer.assign(wanted))

    def unsubscribe(self) -> None:
        """Leave the group; it is left in the background."""
        self._topics, self._pattern = frozenset(), None
        self._unsubscribing = asyncio.ensure_future(self._consumer.unsubscribe())

    def assignment(self) -> frozenset[TopicPartition]:
        return frozenset(self._consumer.assignment)

    def subscription(self) -> frozenset[str]:
        return frozenset(self._consumer.subscription) or self._topics

    async def topics(self) -> set[str]:
        """The names of all topics."""
        with translating():
            deadline = Deadline(self._options["request_timeout_ms"] / 1000)
            response = await self._consumer.cluster.ask_metadata(None, deadline)
        return {topic.name for topic in response.topics if topic.name and not topic.is_internal}

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        view = self._consumer.cluster.metadata.topics.get(topic)
        return None if view is None else set(view.partitions)

    # records

    async def getone(self, *partitions: TopicPartition) -> ConsumerRecord[Any, Any]:
        """Wait for the next record, of these partitions or of all."""
        self._check_open()
        while True:
            record = self._next_of_run(partitions)
            if record is not None:
                return self._converted(record)
            with translating():
                self._run = await self._consumer.next_run(_of(partitions))
            if self._run is None:
                raise ConsumerStoppedError
            self._left = iter(self._run)

    def _next_of_run(self, partitions: tuple[TopicPartition, ...]) -> Record[bytes, bytes] | None:
        if self._run is None or (partitions and self._run.state.partition not in partitions):
            return None
        record = next(self._left, None)
        if record is None:
            self._run = None
        else:
            self._run.current = record
        return record

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> dict[TopicPartition, list[ConsumerRecord[Any, Any]]]:
        """The records that were fetched; none if there are none within timeout_ms."""
        if max_records is not None and max_records < 1:
            raise ValueError("`max_records` must be a positive Integer")
        self._check_open()
        self._run = None
        with translating():
            found = await self._consumer.poll(
                timeout_s=timeout_ms / 1000, max_records=max_records, partitions=partitions or None
            )
        return {partition: [self._converted(record) for record in records] for partition, records in found.items()}

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[Any, Any]]:
        self._check_open()
        return self

    async def __anext__(self) -> ConsumerRecord[Any, Any]:
        try:
            return await self.getone()
        except ConsumerStoppedError:
            raise StopAsyncIteration from None

    def _converted(self, record: Record[bytes, bytes]) -> ConsumerRecord[Any, Any]:
        key, value = record.key, record.value
        self._polled_ms[TopicPartition(record.topic, record.partition)] = round(
            asyncio.get_running_loop().time() * 1000
        )
        deserialize_key, deserialize_value = self._options["key_deserializer"], self._options["value_deserializer"]
        return ConsumerRecord(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            deserialize_key(key) if deserialize_key is not None else key,
            deserialize_value(value) if deserialize_value is not None else value,
            None,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
            tuple((name, b"" if text is None else text) for name, text in record.headers),
        )

    # positions

    async def position(self, partition: TopicPartition) -> int:
        with translating():
            return await self._consumer.position(partition)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        if not isinstance(offset, int) or offset < 0:
            raise ValueError("Offset must be a positive integer")
        with translating(IllegalStateError):
            self._consumer.seek(partition, offset)

    async def seek_to_beginning(self, *partitions: TopicPartition) -> bool:
        return await self._seek(self._consumer.seek_to_beginning, partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> bool:
        return await self._seek(self._consumer.seek_to_end, partitions)

    async def _seek(self, seek: Callable[..., None], partitions: tuple[TopicPartition, ...]) -> bool:
        wanted = [TopicPartition(*each) for each in partitions] or self._consumer.assignment
        with translating():
            seek(*wanted)
            for partition in wanted:
                await self._consumer.position(partition)
        return True

    async def seek_to_committed(self, *partitions: TopicPartition) -> dict[TopicPartition, int | None]:
        wanted = [TopicPartition(*each) for each in partitions] or self._consumer.assignment
        with translating():
            found = await self._consumer.committed(wanted)
            for partition, committed in found.items():
                if committed is not None:
                    self._consumer.seek(partition, committed.offset)
        return {partition: None if committed is None else committed.offset for partition, committed in found.items()}

    def pause(self, *partitions: TopicPartition) -> None:
        with translating(IllegalStateError):
            self._consumer.pause(*partitions)

    def resume(self, *partitions: TopicPartition) -> None:
        with translating(IllegalStateError):
            self._consumer.resume(*partitions)

    def paused(self) -> set[TopicPartition]:
        return set(self._consumer.paused)

    def highwater(self, partition: TopicPartition) -> int | None:
        end = self._consumer.end_as_fetched(partition, reads_committed=False)
        return None if end < 0 else end

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        end = self._consumer.end_as_fetched(partition, reads_committed=True)
        return None if end < 0 else end

    def last_poll_timestamp(self, partition: TopicPartition) -> int | None:
        return self._polled_ms.get(TopicPartition(*partition))

    async def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        with translating():
            return await self._consumer.beginning_offsets(partitions)

    async def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        with translating():
            return await self._consumer.end_offsets(partitions)

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        with translating():
            found = await self._consumer.offsets_for_times(timestamps)
        return {
            partition: None if each is None else OffsetAndTimestamp(each.offset, each.timestamp)
            for partition, each in found.items()
        }

    # committed offsets

    async def commit(
        self, offsets: Mapping[TopicPartition, int | tuple[int, str] | OffsetAndMetadata] | None = None
    ) -> None:
        self._check_group()
        with translating(commits=True):
            await self._consumer.commit(None if offsets is None else committed_offsets(offsets))

    async def committed(self, partition: TopicPartition) -> int | None:
        self._check_group()
        with translating():
            found = (await self._consumer.committed([partition]))[TopicPartition(*partition)]
        return None if found is None else found.offset

    def _check_group(self) -> None:
        if self._group_id is None:
            raise IllegalOperation("Requires group_id")

    def _check_open(self) -> None:
        if self._consumer.is_closed:
            raise ConsumerStoppedError


def _none(partition: TopicPartition) -> bool:
    return False


def _of(partitions: tuple[TopicPartition, ...]) -> Callable[[TopicPartition], bool] | None:
    return (lambda partition: partition in partitions) if partitions else None
