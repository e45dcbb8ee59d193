"""The shard of one ``__share_group_state`` partition: the durable state of the share partitions that hash to it.

Partition leaders write the state of acknowledged records and read it when they become leader; the group coordinator
initializes, deletes and summarizes it. Two epochs fence stale requests: a partition's leader epoch, so that a former
leader cannot write, and the state epoch, which increases whenever a group's start offset is set.

A write is recorded as an update, and after ``updates_per_snapshot`` updates as a snapshot. Records before the oldest of
the latest snapshots are redundant: `prunable_offset` returns that offset, and the driver deletes the records below it.
Share partitions without writes are snapshotted again periodically, since otherwise they would retain all later records.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.sweep import Sweep
from millbeck.coordinator.runtime.timer import Timers
from millbeck.coordinator.share import records
from millbeck.coordinator.share.batches import combine
from millbeck.coordinator.share.records import (
    UNKNOWN_COUNT,
    ShareRecord,
    ShareSnapshotKey,
    ShareSnapshotValue,
    ShareUpdateKey,
    ShareUpdateValue,
)
from millbeck.coordinator.share.states import StateBatch
from millbeck.kernel.errors import ApiError, FencedLeaderEpoch, FencedStateEpoch, InvalidRequest
from millbeck.kernel.ids import Uuid
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict

UNINITIALIZED_OFFSET: Final = -1
UNKNOWN_EPOCH: Final = -1
COLD_KEY: Final = ("snapshot-cold-partitions",)
SNAPSHOT_WEIGHT: Final = 10
"""Weight of a snapshot without batches: as much work as visiting ten share partitions."""


class ShareKey(NamedTuple):
    """Identifies a share partition."""

    group_id: str
    topic_id: Uuid
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareState:
    """The state of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int = UNKNOWN_COUNT
    batches: tuple[StateBatch, ...] = ()
    created_ms: int = 0
    written_ms: int = 0
    update_count: int = 0
    """Number of updates since the last snapshot."""
    snapshot_offset: int = 0
    """Offset of that snapshot in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWrite:
    """A write request of a partition's leader."""

    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]


@dataclass(slots=True, kw_only=True)
class ShareShardOptions:
    updates_per_snapshot: int = 500
    cold_interval_ms: int = 300_000


class ShareShard:
    def __init__(self, registry: SnapshotRegistry, timers: Timers[ShareRecord], options: ShareShardOptions) -> None:
        self._options = options
        self._states: TimelineDict[ShareKey, ShareState] = TimelineDict(registry)
        self._cold = Sweep(
            timers,
            COLD_KEY,
            self._snapshot_if_cold,
            keys=lambda: self._states,
            interval_ms=lambda: options.cold_interval_ms,
            weight=self._snapshot_weight,
        )
        self.write_count = 0
        """Number of writes since the shard was loaded."""

    def __len__(self) -> int:
        return len(self._states)

    # Records

    def encode(self, record: ShareRecord) -> tuple[bytes, bytes | None]:
        return records.encode(record)

    def decode(self, key: bytes, value: bytes | None) -> ShareRecord | None:
        return records.decode(key, value)

    def replay(self, record: ShareRecord, *, offset: int, producer_id: int) -> None:
        key = ShareKey(record.key.group_id, record.key.topic_id, record.key.partition)
        value = record.value
        if value is None:
            self._states.pop(key, None)
        elif isinstance(value, ShareSnapshotValue):
            self._states[key] = ShareState(
                snapshot_epoch=value.snapshot_epoch,
                state_epoch=value.state_epoch,
                leader_epoch=value.leader_epoch,
                start_offset=value.start_offset,
                delivery_complete_count=value.delivery_complete_count,
                batches=tuple(records.batches_of(value)),
                created_ms=value.create_timestamp,
                written_ms=value.write_timestamp,
                snapshot_offset=offset,
            )
        else:
            self._replay_update(key, value)

    def _replay_update(self, key: ShareKey, value: ShareUpdateValue) -> None:
        state = self._states.get(key)
        # An update without its snapshot belongs to a deleted share partition.
        if state is None or state.snapshot_epoch != value.snapshot_epoch:
            return
        start_offset = max(state.start_offset, value.start_offset)
        self._states[key] = replace(
            state,
            leader_epoch=value.leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=value.delivery_complete_count,
            batches=tuple(combine(state.batches, records.batches_of(value), start_offset)),
            update_count=state.update_count + 1,
        )

    def replay_end_transaction(self, *, producer_id: int, is_committed: bool) -> None:
        """Do nothing: transactions do not write to this topic."""

    def on_loaded(self, now_ms: int) -> None:
        self._cold.start()

    def on_unloaded(self, error: ApiError) -> None:
        """Do nothing: requests only wait for commits."""

    # Requests of partition leaders

    def read(self, key: ShareKey, leader_epoch: int) -> Result[ShareRecord, ShareState]:
        """Return the state to the leader of ``leader_epoch``; older leaders are fenced from now on."""
        state = self._states.get(key)
        if state is None:
            raise InvalidRequest("the share partition is not initialized")
        if state.leader_epoch > leader_epoch:
            raise FencedLeaderEpoch(f"the leader epoch is older than {state.leader_epoch}")
        if leader_epoch == state.leader_epoch:
            return Result(response=state)
        state = replace(state, leader_epoch=leader_epoch)
        value = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=leader_epoch,
            start_offset=state.start_offset,
            delivery_complete_count=state.delivery_complete_count,
        )
        return Result(records=[ShareRecord(ShareUpdateKey(*key), value)], response=state)

    def write(self, key: ShareKey, written: StateWrite, now_ms: int) -> Result[ShareRecord, bool]:
        """Store a leader's write. Raises FENCED_LEADER_EPOCH or FENCED_STATE_EPOCH."""
        state = self._states.get(key)
        if state is None:
            raise InvalidRequest("the share partition is not initialized")
        if state.leader_epoch > written.leader_epoch:
            raise FencedLeaderEpoch(f"the leader epoch is older than {state.leader_epoch}")
        if state.state_epoch > written.state_epoch:
            raise FencedStateEpoch(f"the share partition was reset in state epoch {state.state_epoch}")
        self.write_count += 1
        if state.state_epoch < written.state_epoch or state.update_count >= self._options.updates_per_snapshot:
            return Result(records=[self._snapshot_with(key, state, written, now_ms)], response=True)
        value = ShareUpdateValue(
            snapshot_epoch=state.snapshot_epoch,
            leader_epoch=written.leader_epoch,
            start_offset=written.start_offset,
            state_batches=records.recorded(written.batches),
            delivery_complete_count=written.delivery_complete_count,
        )
        return Result(records=[ShareRecord(ShareUpdateKey(*key), value)], response=True)

    def _snapshot_with(self, key: ShareKey, state: ShareState, written: StateWrite, now_ms: int) -> ShareRecord:
        start_offset = max(state.start_offset, written.start_offset)
        return self._snapshot(
            key,
            replace(
                state,
                state_epoch=written.state_epoch,
                leader_epoch=written.leader_epoch,
                start_offset=start_offset,
                delivery_complete_count=written.delivery_complete_count,
                batches=tuple(combine(state.batches, written.batches, start_offset)),
            ),
            now_ms,
        )

    def _snapshot(self, key: ShareKey, state: ShareState, now_ms: int) -> ShareRecord:
        value = ShareSnapshotValue(
            snapshot_epoch=state.snapshot_epoch + 1,
            state_epoch=state.state_epoch,
            leader_epoch=state.leader_epoch,
            start_offset=state.start_offset,
            create_timestamp=state.created_ms,
            write_timestamp=now_ms,
            state_batches=records.recorded(state.batches),
            delivery_complete_count=state.delivery_complete_count,
        )
        return ShareRecord(ShareSnapshotKey(*key), value)

    # Requests of the group coordinator

    def initialize(
        self, key: ShareKey, *, state_epoch: int, start_offset: int, now_ms: int
    ) -> Result[ShareRecord, bool]:
        """Initialize a share partition, or reset its start offset with a higher state epoch."""
        state = self._states.get(key)
        if state is not None and state.state_epoch > state_epoch:
            raise FencedStateEpoch(f"the share partition was initialized in state epoch {state.state_epoch}")
        if state is not None and start_offset == UNINITIALIZED_OFFSET:
            # A retry: state written since must not be lost.
            return Result(response=True)
        fresh = ShareState(
            snapshot_epoch=-1 if state is None else state.snapshot_epoch,
            state_epoch=state_epoch,
            leader_epoch=UNKNOWN_EPOCH if state is None else state.leader_epoch,
            start_offset=start_offset,
            created_ms=now_ms,
        )
        return Result(records=[self._snapshot(key, fresh, now_ms)], response=True)

    def delete(self, key: ShareKey) -> Result[ShareRecord, bool]:
        if key not in self._states:
            return Result(response=True)
        return Result(records=[ShareRecord(ShareSnapshotKey(*key), None)], response=True)

    def summary(self, key: ShareKey, at: int) -> ShareState | None:
        """The committed state; None if the share partition is not initialized."""
        return self._states.get_at(key, at)

    def keys_of_topics(self, topic_ids: frozenset[Uuid]) -> list[ShareKey]:
        return [key for key in self._states if key.topic_id in topic_ids]

    def on_topics_deleted(self, topic_ids: frozenset[Uuid]) -> Result[ShareRecord, None]:
        """Delete the state of deleted topics."""
        found = [ShareRecord(ShareSnapshotKey(*key), None) for key in self.keys_of_topics(topic_ids)]
        return Result(records=found, is_atomic=False)

    # Pruning the log

    def prunable_offset(self, written_offset: int) -> int:
        """The offset below which all records are redundant; ``written_offset`` if there is no state."""
        return min((state.snapshot_offset for state in self._states.values()), default=written_offset)

    def _snapshot_if_cold(self, key: ShareKey, now_ms: int) -> Result[ShareRecord, None] | None:
        """Snapshot a share partition that has not been written for long."""
        state = self._states.get(key)
        if state is None or state.written_ms > now_ms - self._options.cold_interval_ms:
            return None
        return Result(records=[self._snapshot(key, state, now_ms)], is_atomic=False)

    def _snapshot_weight(self, key: ShareKey) -> int:
        state = self._states.get(key)
        return SNAPSHOT_WEIGHT + (0 if state is None else len(state.batches))
