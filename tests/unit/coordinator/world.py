"""A group shard with everything around it in memory: its log, its timers, and clients that ask it things.

Time moves only by `World.advance`. Appends are committed at once unless `Log.holds_commits` is set; `Log.refusal` makes
the next ones fail. `World.reload` builds the shard anew from the log's bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import pack
from typing import Any

from millbeck.coordinator.config import ClassicGroupOptions, GroupShardOptions, OffsetOptions
from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.consumer.cluster_view import ClusterView, GroupSettings, StreamsSettings
from millbeck.coordinator.group.consumer.heartbeat import Sender
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.shard import GroupShard
from millbeck.coordinator.protocol_config import ConsumerProtocolOptions, StreamsProtocolOptions
from millbeck.coordinator.runtime.loader import Loader
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.runtime.shard_runner import Entry, ProducerIdAndEpoch, ShardRunner, TransactionEnd
from millbeck.kernel.errors import ApiError, MessageTooLarge, by_code
from millbeck.kernel.timer_wheel import Timer, TimerWheel
from millbeck.metadata.image import MetadataImage
from millbeck.metadata.image.topics import PartitionRegistration, TopicImage, TopicsImage
from millbeck.records import batch, control
from millbeck.records.record import UNASSIGNED, Record
from millbeck.wire.messages.classic_groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from millbeck.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatTopicPartitions
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

START_MS = 1_000_000
TOPIC_ID = bytes(range(16))


class Scheduler:
    """Timers on a wheel that the test turns."""

    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms
        self.wheel = TimerWheel(now_ms)

    def after(self, delay_ms: int, callback: Callable[[int], None]) -> Timer:
        return self.wheel.add(self.now_ms + delay_ms, lambda: callback(self.now_ms))

    def advance(self, delay_ms: int, after_each: Callable[[], None] = lambda: None) -> None:
        """Let time pass; whatever becomes due runs at its own time, in order."""
        end_ms = self.now_ms + delay_ms
        while (deadline_ms := self.wheel.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            for callback in self.wheel.advance(self.now_ms):
                callback()
                after_each()
        self.now_ms = end_ms


class Log:
    """The partition: batches in order, and how far they are committed."""

    batch_size_bytes_max = 1_000_000
    max_message_bytes = 1_000_100

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.end_offset = 0
        self.high_watermark = 0
        self.holds_commits = False
        self.refusal: ApiError | None = None

    def append(
        self,
        entries: Sequence[Entry],
        now_ms: int,
        producer: ProducerIdAndEpoch | None = None,
        *,
        is_size_limited: bool = True,
    ) -> int:
        if self.refusal is not None:
            raise self.refusal
        base_offset = self.end_offset
        records = [Record(UNASSIGNED, now_ms, key, value) for key, value in entries]
        producer_id, producer_epoch = producer or (-1, -1)
        data = batch.build(
            records,
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=producer is not None,
        )
        if is_size_limited and len(data) > self.max_message_bytes:
            raise MessageTooLarge(f"a batch of {len(data)} bytes")
        self.batches.append(data)
        self.end_offset += len(records)
        return base_offset

    def append_marker(self, marker: TransactionEnd, now_ms: int) -> int:
        if self.refusal is not None:
            raise self.refusal
        base_offset = self.end_offset
        end = control.EndTransaction(committed=marker.is_committed, coordinator_epoch=marker.coordinator_epoch)
        self.batches.append(
            control.marker_batch(
                end,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                timestamp=now_ms,
                base_offset=base_offset,
            )
        )
        self.end_offset += 1
        return base_offset

    def take_back(self, offset: int) -> None:
        self.batches = [data for data in self.batches if batch.read_header(data).base_offset < offset]
        self.end_offset = offset


class Outcome:
    """What a request came to: nothing yet, a response, or an error."""

    def __init__(self) -> None:
        self.response: Any = None
        self.error: ApiError | None = None
        self.reply: ResponseCallback[Any] = ResponseCallback(self._succeed, self._fail)

    def _succeed(self, response: Any) -> None:
        assert not self.is_done
        self.response = response

    def _fail(self, error: ApiError) -> None:
        assert not self.is_done
        self.error = error

    @property
    def is_done(self) -> bool:
        return self.response is not None or self.error is not None

    @property
    def code(self) -> int | None:
        """The error code a client would see; None while it waits."""
        if self.error is not None:
            return self.error.code
        return None if self.response is None else int(self.response.error_code)

    @property
    def code_name(self) -> str:
        code = self.code
        if code is None:
            return "WAITING"
        return "NONE" if code == 0 else by_code[code].kafka_name


def subscription(*topics: str, version: int = 0, tail: bytes = b"\xff\xff\xff\xff") -> bytes:
    encoded = b"".join(pack(">h", len(topic.encode())) + topic.encode() for topic in topics)
    return pack(">hi", version, len(topics)) + encoded + tail


def topic_id(name: str) -> bytes:
    return TOPIC_ID if name == "t" else name.encode().ljust(16, b"-")


def image_of(topics: dict[str, int]) -> MetadataImage:
    """An image with these topics, given with their partition counts."""
    partition = PartitionRegistration(
        replicas=(1,), directories=(bytes(16),), isr=(1,), leader=1, leader_epoch=0, partition_epoch=0
    )
    images = [
        TopicImage(name=name, topic_id=topic_id(name), partitions=dict.fromkeys(range(count), partition))
        for name, count in topics.items()
    ]
    return MetadataImage(
        topics=TopicsImage(by_id={each.topic_id: each for each in images}, by_name={each.name: each for each in images})
    )


class Jobs:
    """Work a shard gave away: done when the test says so, or at once."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Any, Any, Any]] = []

    def run(self, job: Any, then: Any, failed: Any) -> None:
        self.waiting.append((job, then, failed))


class World:
    def __init__(
        self,
        *,
        log: Log | None = None,
        now_ms: int = START_MS,
        topics: dict[str, int] | None = None,
        consumer: dict[str, Any] | None = None,
        streams: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        """``consumer`` and ``streams`` are settings of such groups, ``topics`` those that exist with their partition
        counts."""
        defaults = {"initial_rebalance_delay_ms": 3000}
        classic = {name: value for name, value in (defaults | options).items() if hasattr(ClassicGroupOptions, name)}
        offsets = {name: value for name, value in options.items() if name not in classic}
        self._options = options | {"consumer": consumer, "streams": streams}
        self.options = GroupShardOptions(
            classic=ClassicGroupOptions.of().replace(**classic),
            offsets=OffsetOptions.of().replace(**offsets),
            consumer=ConsumerProtocolOptions.of().replace(**(consumer or {})),
            streams=StreamsProtocolOptions.of().replace(**(streams or {})),
        )
        settings, own = self.options.consumer, self.options.streams
        self.cluster = ClusterView(
            GroupSettings(settings.session_timeout_ms, settings.heartbeat_interval_ms, settings.assignment_interval_ms),
            StreamsSettings(
                own.session_timeout_ms,
                own.heartbeat_interval_ms,
                own.assignment_interval_ms,
                own.initial_rebalance_delay_ms,
                own.standby_replica_count,
            ),
        )
        self.topics = {"t": 4, "u": 2} if topics is None else topics
        self.cluster.publish(image_of(self.topics))
        self.jobs = Jobs()
        self.log = log or Log()
        self.scheduler = Scheduler(now_ms)
        self.uuid_count = 0
        self.host: ShardRunner[GroupShard, GroupRecord] = ShardRunner(
            lambda registry, timers: GroupShard(
                registry, timers, self.options, cluster=self.cluster, background=self.jobs
            ),
            appender=self.log,
            scheduler=self.scheduler,
            commit_timeout_ms=5000,
        )
        loader = Loader(
            self.host.shard, iter(self.log.batches), lambda at: self.host.reached(at, self.log.high_watermark)
        )
        while not loader.advance():
            pass
        self.host.loaded(
            end_offset=self.log.end_offset, high_watermark=self.log.high_watermark, now_ms=self.scheduler.now_ms
        )

    @property
    def shard(self) -> GroupShard:
        return self.host.shard

    @property
    def now_ms(self) -> int:
        return self.scheduler.now_ms

    def group(self, group_id: str = "g") -> Any:
        return self.shard._groups.get(group_id)

    def state(self, group_id: str = "g") -> str:
        group = self.group(group_id)
        return "-" if group is None else str(group.state.value)

    def reload(self) -> World:
        """Another host for the same log, as after a restart."""
        self.host.close()
        reloaded = World(log=self.log, now_ms=self.now_ms, topics=self.topics, **self._options)
        reloaded.uuid_count = self.uuid_count
        return reloaded

    def commit_log(self) -> None:
        """What is appended becomes committed."""
        self.log.high_watermark = self.log.end_offset
        self.host.on_high_watermark_advanced(self.log.end_offset, self.now_ms)

    def take_back(self, offset: int, error: ApiError) -> None:
        self.log.take_back(offset)
        self.host.write_failed(offset, error, self.now_ms)

    def advance(self, delay_ms: int) -> None:
        self.scheduler.advance(delay_ms, self._commit_if_allowed)

    def _commit_if_allowed(self) -> None:
        if not self.log.holds_commits and self.log.high_watermark < self.log.end_offset:
            self.commit_log()

    def write(self, operation: Callable[[GroupShard, Outcome], Any]) -> Outcome:
        outcome = Outcome()
        self.host.write(lambda shard: operation(shard, outcome), outcome.reply, self.now_ms)
        self._commit_if_allowed()
        return outcome

    def set_topics(self, **topics: int) -> None:
        self.topics = topics
        self.cluster.publish(image_of(topics))

    def _finish_job(self, result: Any, then: Callable[[Any, int], Any], failed: Callable[[], None]) -> None:
        outcome: ResponseCallback[None] = ResponseCallback(lambda _: None, lambda _: failed())
        self.host.write(lambda _: then(result, self.now_ms), outcome, self.now_ms)

    def run_jobs(self) -> int:
        """Do the work that was given away; how much there was."""
        waiting, self.jobs.waiting = self.jobs.waiting, []
        for job, then, failed in waiting:
            self._finish_job(job(), then, failed)
            self._commit_if_allowed()
        return len(waiting)

    # Clients

    def beat(
        self,
        member_id: str,
        epoch: int,
        *,
        group: str = "g",
        topics: list[str] | None = None,
        regex: str | None = None,
        owned: dict[str, list[int]] | None = None,
        instance: str | None = None,
        rack: str | None = None,
        assignor: str | None = None,
        rebalance_ms: int = -1,
        version: int = 1,
    ) -> Outcome:
        """ConsumerGroupHeartbeat, with nothing in it that is not given."""
        self.uuid_count += 1
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=epoch,
            instance_id=instance,
            rack_id=rack,
            rebalance_timeout_ms=rebalance_ms,
            subscribed_topic_names=topics,
            subscribed_topic_regex=regex,
            server_assignor=assignor,
            topic_partitions=(
                None
                if owned is None
                else [
                    ConsumerGroupHeartbeatTopicPartitions(topic_id(name), partitions)
                    for name, partitions in owned.items()
                ]
            ),
        )
        sender = Sender(
            client=Client(client_id="c", host="/10.0.0.1"), version=version, new_uuid=f"uuid{self.uuid_count}"
        )
        return self.write(lambda shard, _: shard.consumer_heartbeat(request, sender, self.now_ms))

    def enter_consumer(self, member_id: str, topics: list[str] | None = None, **options: Any) -> Outcome:
        """Join a consumer group."""
        wanted = ["t"] if topics is None and "regex" not in options else topics
        return self.beat(member_id, 0, topics=wanted, owned={}, rebalance_ms=60_000, **options)

    def described(self, group: str = "g") -> Any:
        outcome = Outcome()
        self.host.read(lambda shard, at: shard.describe_consumer_group(group, at), outcome.reply)
        return outcome.response

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        version: int = 9,
        instance: str | None = None,
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        protocols: dict[str, bytes] | None = None,
        protocol_type: str = "consumer",
        client: str = "c",
    ) -> Outcome:
        self.uuid_count += 1
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name, metadata)
                for name, metadata in ({"range": subscription("t")} if protocols is None else protocols).items()
            ],
        )
        return self.write(
            lambda shard, outcome: shard.join(
                request,
                version=version,
                client=Client(client_id=client, host="/10.0.0.1"),
                new_uuid=f"uuid{self.uuid_count}",
                reply=outcome.reply,
                now_ms=self.now_ms,
            )
        )

    def enter(self, **options: Any) -> Outcome:
        """Join as a new dynamic member does: once for the id, once with it."""
        first = self.join(**options)
        assert first.code_name == "MEMBER_ID_REQUIRED", first.code_name
        return self.join(first.response.member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Outcome:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocol_name=protocol_name,
            assignments=[SyncGroupRequestAssignment(member, work) for member, work in (assignments or {}).items()],
        )
        return self.write(lambda shard, outcome: shard.sync(request, outcome.reply))

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None) -> Outcome:
        request = HeartbeatRequest(group, generation, member_id, instance)
        return self.write(lambda shard, _: shard.heartbeat(request))

    def leave(self, *members: tuple[str, str | None], group: str = "g", version: int = 5) -> Outcome:
        if version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=members[0][0])
        else:
            request = LeaveGroupRequest(group_id=group, members=[MemberIdentity(*member) for member in members])
        return self.write(lambda shard, _: shard.leave(request, version, self.now_ms))

    def commit(
        self,
        offsets: dict[tuple[str, int], int],
        *,
        group: str = "g",
        member_id: str = "",
        generation: int = -1,
        instance: str | None = None,
        metadata: str | None = "",
        retention_ms: int = -1,
        version: int = 9,
        topic_id: bytes = TOPIC_ID,
    ) -> Outcome:
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (name, partition), offset in offsets.items():
            topic = topics.setdefault(name, OffsetCommitRequestTopic(name, topic_id, []))
            topic.partitions.append(OffsetCommitRequestPartition(partition, offset, 3, metadata))
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=list(topics.values()),
        )
        return self.write(lambda shard, _: shard.commit_offsets(request, version, self.now_ms))

    def fetch(
        self,
        places: dict[str, list[int]] | None,
        *,
        group: str = "g",
        stable: bool = False,
        topic_id: bytes = TOPIC_ID,
        member_id: str | None = None,
        epoch: int = -1,
    ) -> Outcome:
        topics = None
        if places is not None:
            topics = [OffsetFetchRequestTopics(name, topic_id, indexes) for name, indexes in places.items()]
        request = OffsetFetchRequestGroup(group, member_id, epoch, topics)
        if stable:
            return self.write(lambda shard, _: shard.fetch_stable_offsets(request))
        outcome = Outcome()
        self.host.read(lambda shard, at: shard.fetch_offsets(request, at), outcome.reply)
        return outcome

    def fetched(self, places: dict[str, list[int]] | None, **options: Any) -> dict[tuple[str, int], int]:
        """Offsets by place."""
        response = self.fetch(places, **options).response
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for topic in response.topics
            for partition in topic.partitions
        }

    # Short cuts

    def stable_group(self, count: int = 1, *, group: str = "g", **options: Any) -> list[str]:
        """A group of dynamic members that has completed its first rebalance; the first one leads."""
        joins = [self.enter(group=group, client=f"c{index}", **options) for index in range(count)]
        self.advance(self.options.classic.initial_rebalance_delay_ms * 2)
        members = [join.response.member_id for join in joins]
        generation = joins[0].response.generation_id
        syncs = [
            self.sync(
                member, generation, {each: each.encode() for each in members} if index == 0 else None, group=group
            )
            for index, member in enumerate(members)
        ]
        assert [sync.code_name for sync in syncs] == ["NONE"] * count
        assert self.state(group) == "Stable"
        return members
