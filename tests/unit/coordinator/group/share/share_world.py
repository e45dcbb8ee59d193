"""Share groups alone: their log in memory, topics that a test makes up, and a share coordinator that it plays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from millbeck.coordinator.group import records
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.share.context import MembershipSettings, PartitionStart
from millbeck.coordinator.group.share.groups import ShareGroups
from millbeck.coordinator.protocol_config import ShareProtocolOptions
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard_runner import Entry, ShardRunner
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import Uuid
from millbeck.kernel.timeline import SnapshotRegistry
from millbeck.kernel.timer_wheel import Timer, TimerWheel
from millbeck.wire.messages.share_groups import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


class MadeUp(NamedTuple):
    topic_id: Uuid
    name: str
    partition_count: int


class MadeUpTopics:
    def __init__(self, **counts: int) -> None:
        self.version = 0
        self.counts = counts

    def shape(self, name: str) -> MadeUp | None:
        count = self.counts.get(name)
        return None if count is None else MadeUp(id_of(name), name, count)

    def name_of(self, topic_id: Uuid) -> str | None:
        return next((name for name in self.counts if id_of(name) == topic_id), None)

    def metadata_hash(self, names: Iterable[str]) -> int:
        return sum(1000 * len(name) + self.counts[name] for name in names if name in self.counts)

    def change(self, **counts: int) -> None:
        self.counts = counts
        self.version += 1


def id_of(name: str) -> Uuid:
    return name.encode().ljust(16, b"\0")


class _Shard:
    """What a group shard does for share groups."""

    def __init__(self, share: ShareGroups) -> None:
        self.share = share

    def encode(self, record: GroupRecord) -> Entry:
        return records.encode(record)

    def decode(self, key: bytes, value: bytes | None) -> GroupRecord | None:
        return records.decode(key, value)

    def replay(self, record: GroupRecord, *, offset: int, producer_id: int) -> None:
        self.share.replay(record.key, record.value)

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None: ...

    def on_loaded(self, now_ms: int) -> None:
        self.share.on_loaded()

    def on_unloaded(self, error: ApiError) -> None: ...


class ShareWorld:
    batch_size_bytes_max = 1 << 20

    def __init__(self, *, answers: bool = True, size_max: int = 200, **counts: int) -> None:
        self.topics = MadeUpTopics(**(counts or {"t": 2}))
        self.answers = answers
        self.asked: list[tuple[str, int, list[PartitionStart]]] = []
        self.settings: dict[str, MembershipSettings] = {}
        self.options = ShareProtocolOptions.of(size_max=str(size_max))
        self.entries: list[Entry] = []
        self.now_ms = 1_000_000
        self.wheel = TimerWheel(self.now_ms)
        self.load()

    def load(self) -> None:
        log: Any = self
        self.host: ShardRunner[_Shard, GroupRecord] = ShardRunner(
            self._build, appender=log, scheduler=self, commit_timeout_ms=1000
        )
        for offset, entry in enumerate(self.entries):
            record = records.decode(*entry)
            assert record is not None
            self.host.shard.replay(record, offset=offset, producer_id=-1)
        end = len(self.entries)
        self.host.loaded(end_offset=end, high_watermark=end, now_ms=self.now_ms)

    def _build(self, registry: SnapshotRegistry, timers: Timers[GroupRecord]) -> _Shard:
        return _Shard(ShareGroups(registry, timers, self.options, self.topics, self, self.settings))

    @property
    def share(self) -> ShareGroups:
        return self.host.shard.share

    def initialize(self, group_id: str, state_epoch: int, beginnings: list[PartitionStart]) -> None:
        self.asked.append((group_id, state_epoch, beginnings))
        if self.answers:
            self.answer(group_id, beginnings)

    def answer(self, group_id: str, beginnings: Sequence[PartitionStart]) -> None:
        done = [(each.topic_id, each.partition) for each in beginnings]
        self.do(lambda share: share.initialized(group_id, done, self.now_ms))

    def append(self, entries: Sequence[Entry], now_ms: int) -> int:
        self.entries += entries
        return len(self.entries) - len(entries)

    def after(self, delay_ms: int, callback: Callable[[int], None]) -> Timer:
        return self.wheel.add(self.now_ms + delay_ms, lambda: callback(self.now_ms))

    def advance(self, delay_ms: int) -> None:
        end_ms = self.now_ms + delay_ms
        while (deadline_ms := self.wheel.next_deadline_ms()) is not None and deadline_ms <= end_ms:
            self.now_ms = max(self.now_ms, deadline_ms)
            for callback in self.wheel.advance(self.now_ms):
                callback()
                self.commit()
        self.now_ms = end_ms

    def commit(self) -> None:
        self.host.on_high_watermark_advanced(len(self.entries), self.now_ms)

    def do(self, operation: Callable[[ShareGroups], Result[GroupRecord, Any]]) -> Any:
        found: list[Any] = []
        failed: list[ApiError] = []
        self.host.write(
            lambda shard: operation(shard.share), ResponseCallback(found.append, failed.append), self.now_ms
        )
        self.commit()
        if failed:
            raise failed[0]
        return found[0] if found else None

    def beat(
        self, member: str = "m", epoch: int = 0, topics: list[str] | None = None, group: str = "g", **fields: Any
    ) -> ShareGroupHeartbeatResponse:
        names = ["t"] if epoch == 0 and topics is None else topics
        request = ShareGroupHeartbeatRequest(group, member, epoch, fields.get("rack"), names)
        answer: ShareGroupHeartbeatResponse = self.do(
            lambda share: share.heartbeat(request, client_id="c", client_host="/h", now_ms=self.now_ms)
        )
        return answer


def assigned(answer: ShareGroupHeartbeatResponse) -> dict[str, list[int]] | None:
    if answer.assignment is None:
        return None
    return {each.topic_id.rstrip(b"\0").decode(): each.partitions for each in answer.assignment.topic_partitions}
