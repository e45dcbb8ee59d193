from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.runtime.shard_runner import Entry, ShardRunner
from millbeck.coordinator.share.records import ShareRecord, ShareSnapshotValue, ShareUpdateValue
from millbeck.coordinator.share.shard import ShareKey, ShareShard, ShareShardOptions, ShareState, StateWrite
from millbeck.coordinator.share.states import StateBatch
from millbeck.kernel.errors import ApiError, FencedLeaderEpoch, FencedStateEpoch, InvalidRequest
from tests.unit.coordinator.world import START_MS, Scheduler

KEY = ShareKey("group", bytes(range(16)), 0)
OTHER = ShareKey("group", bytes(range(16)), 1)
ACKNOWLEDGED, ARCHIVED = 2, 4


class World:
    """One shard on a log in memory; each append is committed at once."""

    batch_size_bytes_max = 1 << 20

    def __init__(self, updates_per_snapshot: int = 3) -> None:
        self.entries: list[Entry] = []
        self.scheduler = Scheduler()
        self.options = ShareShardOptions(updates_per_snapshot=updates_per_snapshot, cold_interval_ms=1000)
        self.load()

    def load(self) -> None:
        log: Any = self
        self.host: ShardRunner[ShareShard, ShareRecord] = ShardRunner(
            lambda registry, timers: ShareShard(registry, timers, self.options),
            appender=log,
            scheduler=self.scheduler,
            commit_timeout_ms=1000,
        )
        for offset, entry in enumerate(self.entries):
            record = self.host.shard.decode(*entry)
            assert record is not None
            self.host.shard.replay(record, offset=offset, producer_id=-1)
        end = len(self.entries)
        self.host.loaded(end_offset=end, high_watermark=end, now_ms=self.scheduler.now_ms)

    def append(self, entries: Sequence[Entry], now_ms: int) -> int:
        self.entries += entries
        return len(self.entries) - len(entries)

    def commit(self) -> None:
        self.host.on_high_watermark_advanced(len(self.entries), self.scheduler.now_ms)

    def initialize(self, key: ShareKey = KEY, state_epoch: int = 0, start_offset: int = -1) -> None:
        now_ms = self.scheduler.now_ms
        self._do(lambda shard: shard.initialize(key, state_epoch=state_epoch, start_offset=start_offset, now_ms=now_ms))

    def write(
        self,
        batches: list[StateBatch],
        start_offset: int = 0,
        leader_epoch: int = 0,
        state_epoch: int = 0,
        key: ShareKey = KEY,
        count: int = 0,
    ) -> None:
        written = StateWrite(
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=count,
            batches=batches,
        )
        self._do(lambda shard: shard.write(key, written, self.scheduler.now_ms))

    def read(self, leader_epoch: int = 0) -> ShareState:
        found: list[ShareState] = []
        failed: list[ApiError] = []
        self.host.write(
            lambda shard: shard.read(KEY, leader_epoch),
            ResponseCallback(found.append, failed.append),
            self.scheduler.now_ms,
        )
        self.commit()
        if failed:
            raise failed[0]
        return found[0]

    def _do(self, operation: object) -> None:
        failed: list[ApiError] = []
        answers: list[bool] = []
        self.host.write(operation, ResponseCallback(answers.append, failed.append), self.scheduler.now_ms)  # type: ignore[arg-type]
        self.commit()
        if failed:
            raise failed[0]
        assert answers == [True]

    def summary(self, key: ShareKey = KEY) -> ShareState | None:
        return self.host.shard.summary(key, self.host.committed_offset)

    def values(self) -> list[object]:
        records = [self.host.shard.decode(*entry) for entry in self.entries]
        return [None if record is None else record.value for record in records]


@pytest.fixture
def world() -> World:
    return World()


def test_nothing_is_read_or_written_before_it_is_initialised(world: World) -> None:
    with pytest.raises(InvalidRequest):
        world.read()
    with pytest.raises(InvalidRequest):
        world.write([StateBatch(0, 0, 2, 1)])
    assert world.summary() is None
    assert world.entries == []


def test_what_is_written_is_read_by_the_next_leader(world: World) -> None:
    world.initialize()
    world.write([StateBatch(5, 9, ACKNOWLEDGED, 1)], start_offset=0)
    world.write([StateBatch(7, 7, ARCHIVED, 2)], start_offset=2, count=5)
    state = world.read(leader_epoch=1)
    assert state.start_offset == 2
    assert state.delivery_complete_count == 5
    assert state.batches == (
        StateBatch(5, 6, ACKNOWLEDGED, 1),
        StateBatch(7, 7, ARCHIVED, 2),
        StateBatch(8, 9, ACKNOWLEDGED, 1),
    )


def test_a_reader_fences_older_leaders_also_after_a_reload(world: World) -> None:
    world.initialize()
    world.read(leader_epoch=4)
    world.load()
    with pytest.raises(FencedLeaderEpoch):
        world.write([StateBatch(0, 0, 2, 1)], leader_epoch=3)
    with pytest.raises(FencedLeaderEpoch):
        world.read(leader_epoch=3)
    entry_count = len(world.entries)
    world.read(leader_epoch=4)
    assert len(world.entries) == entry_count, "the same leader reads again without a record"


def test_a_group_that_begins_anew_fences_what_was_before(world: World) -> None:
    world.initialize()
    world.write([StateBatch(0, 3, ACKNOWLEDGED, 1)], start_offset=4)
    world.initialize(state_epoch=2, start_offset=1)
    with pytest.raises(FencedStateEpoch):
        world.write([StateBatch(5, 5, 2, 1)], start_offset=6, state_epoch=0)
    with pytest.raises(FencedStateEpoch):
        world.initialize(state_epoch=1, start_offset=0)
    state = world.read()
    assert (state.state_epoch, state.start_offset, state.batches) == (2, 1, ())


def test_asking_twice_for_the_beginning_forgets_nothing(world: World) -> None:
    world.initialize()
    world.write([], start_offset=7)
    world.initialize()
    assert world.read().start_offset == 7


def test_the_start_does_not_go_back(world: World) -> None:
    world.initialize()
    world.write([], start_offset=7)
    world.write([StateBatch(3, 8, ACKNOWLEDGED, 1)], start_offset=4)
    assert world.read().start_offset == 7
    assert world.read().batches == (StateBatch(7, 8, ACKNOWLEDGED, 1),)


def test_a_snapshot_comes_after_as_many_updates_as_were_set(world: World) -> None:
    world.initialize()
    for offset in range(5):
        world.write([StateBatch(offset * 2 + 1, offset * 2 + 1, ACKNOWLEDGED, 1)])
    kinds = [type(value) for value in world.values()]
    assert kinds == [ShareSnapshotValue, *[ShareUpdateValue] * 3, ShareSnapshotValue, ShareUpdateValue]
    before = world.read()
    world.load()
    assert world.read() == before
    assert len(before.batches) == 5


def test_the_log_is_needed_from_the_oldest_of_the_latest_snapshots_on(world: World) -> None:
    assert world.host.shard.prunable_offset(world.host.written_offset) == 0
    world.initialize()
    world.initialize(OTHER)
    for _ in range(4):
        world.write([])
    assert world.host.shard.prunable_offset(world.host.written_offset) == 1
    for _ in range(4):
        world.write([], key=OTHER)
    assert world.host.shard.prunable_offset(world.host.written_offset) == 5


def test_what_nobody_writes_to_is_written_anew(world: World) -> None:
    world.initialize()
    world.write([StateBatch(1, 2, ACKNOWLEDGED, 1)])
    before = world.read()
    world.scheduler.advance(1500, world.commit)
    assert world.host.shard.prunable_offset(world.host.written_offset) == 2
    after = world.read()
    assert (after.start_offset, after.batches, after.state_epoch) == (
        before.start_offset,
        before.batches,
        before.state_epoch,
    )
    assert after.written_ms == START_MS + 1000


def test_a_deleted_share_partition_is_gone_and_may_begin_again(world: World) -> None:
    world.initialize()
    world.write([], start_offset=5)
    world._do(lambda shard: shard.delete(KEY))
    assert world.summary() is None
    world.load()
    assert world.summary() is None
    world.initialize()
    assert world.read().start_offset == -1


def test_a_deleted_topics_state_goes_with_it(world: World) -> None:
    world.initialize()
    world.initialize(OTHER)
    world.host.write(
        lambda shard: shard.on_topics_deleted(frozenset({KEY.topic_id})),
        ResponseCallback(lambda _: None, lambda _: None),
        0,
    )
    assert len(world.host.shard) == 0


def test_deleting_what_is_not_there_writes_nothing(world: World) -> None:
    assert world.host.shard.delete(KEY) == Result(response=True)


def test_a_write_that_is_not_stored_changes_nothing(world: World) -> None:
    world.initialize()
    end = len(world.entries)
    written = StateWrite(
        state_epoch=0, leader_epoch=0, start_offset=3, delivery_complete_count=0, batches=[StateBatch(4, 4, 2, 1)]
    )
    failed: list[ApiError] = []
    world.host.write(lambda shard: shard.write(KEY, written, 0), ResponseCallback(lambda _: None, failed.append), 0)
    world.host.write_failed(end, InvalidRequest("no"), 0)
    assert len(failed) == 1
    state = world.summary()
    assert state is not None
    assert state.start_offset == -1
    assert state.batches == ()


def test_one_bad_share_partition_does_not_keep_the_log_from_being_cut(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millbeck.coordinator.runtime.sweep.STEP_WEIGHT_MAX", 1)
    original = ShareShard._snapshot

    def snapshot(self: ShareShard, key: ShareKey, state: ShareState, now_ms: int) -> ShareRecord:
        if key == KEY and state.snapshot_epoch >= 0:
            raise ValueError(key)
        return original(self, key, state, now_ms)

    world.initialize()
    world.initialize(OTHER)
    monkeypatch.setattr(ShareShard, "_snapshot", snapshot)
    world.scheduler.advance(5000, world.commit)
    states = {key: world.host.shard.summary(key, len(world.entries)) for key in (KEY, OTHER)}
    assert [None if state is None else state.snapshot_epoch for state in states.values()] == [0, 4]
    assert world.host.failure_count == 4
