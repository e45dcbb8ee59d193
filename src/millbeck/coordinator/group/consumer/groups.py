"""The consumer groups of a shard: replays their records, handles their requests and changes their protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millbeck.coordinator.config import GroupShardOptions
from millbeck.coordinator.group import records
from millbeck.coordinator.group.background import BackgroundExecutor
from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.consumer import assignment, description, heartbeat, migration, writing
from millbeck.coordinator.group.consumer.cluster_view import ClusterView
from millbeck.coordinator.group.consumer.coordination import ConsumerGroupLogic
from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.consumer.heartbeat import HeartbeatResult, Sender
from millbeck.coordinator.group.consumer.member import JOIN_EPOCH, ConsumerMember
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerKey,
)
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.statistics import Counters
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel import errors
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict
from millbeck.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, DescribedConsumerGroup

GroupResult = Result[GroupRecord, Any]


class ConsumerGroups:
    def __init__(
        self,
        groups: TimelineDict[str, Any],
        timers: Timers[GroupRecord],
        options: GroupShardOptions,
        *,
        cluster: ClusterView,
        background: BackgroundExecutor,
        counters: Counters,
        on_downgraded: Callable[[str, int], None],
        on_upgraded: Callable[[ClassicGroup], None],
    ) -> None:
        """``on_downgraded(group_id, now_ms)`` and ``on_upgraded(former)`` are called when the change is committed."""
        self._groups = groups
        self._registry = groups.registry
        self._timers = timers
        self._options = options.consumer
        self._classic = options.classic
        self._cluster = cluster
        self._on_downgraded = on_downgraded
        self._on_upgraded = on_upgraded
        self._offered = self._options.assignor_names
        self.coordination = ConsumerGroupLogic(
            groups,
            timers,
            self._options,
            cluster,
            background,
            counters,
            downgrade=self._downgrade,
            assignors=options.assignors,
        )

    # Records

    def replay(self, key: ConsumerKey, value: Any) -> None:
        """Replay a record; the value is of the class that matches the key, or None for a tombstone."""
        group = self._replayed(key.group_id, is_made=value is not None)
        if group is not None:
            _replay(group, key, value)
            if value is None and isinstance(key, ConsumerGroupMetadataKey):
                self._groups.pop(key.group_id, None)

    def _replayed(self, group_id: str, *, is_made: bool) -> ConsumerGroup | None:
        known = self._groups.get(group_id)
        if isinstance(known, ConsumerGroup):
            return known
        if not is_made:
            return None
        # The group so far had only offsets, or was a classic group that is being upgraded.
        group = self._groups[group_id] = ConsumerGroup(self._registry, group_id)
        return group

    # Members

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, sender: Sender, now_ms: int) -> HeartbeatResult:
        heartbeat.validate(request, sender.version, self._offered)
        if request.member_epoch < JOIN_EPOCH:
            return heartbeat.leave(self.coordination, self._known(request.group_id), request, now_ms)
        former = self._groups.get(request.group_id)
        result = heartbeat.heartbeat(self.coordination, lambda: self._draft_for(request), request, sender, now_ms)
        if isinstance(former, ClassicGroup) and former.members:
            return self._upgrading(former, result)
        return result

    def _known(self, group_id: str) -> ConsumerGroup:
        group = self.coordination.find(group_id)
        if group is None:
            raise errors.GroupIdNotFound(f"Group {group_id} not found.")
        return group

    def _draft_for(self, request: ConsumerGroupHeartbeatRequest) -> Draft:
        group_id = request.group_id
        if request.member_epoch != JOIN_EPOCH:
            return Draft(self._known(group_id))
        known = self._groups.get(group_id)
        if isinstance(known, ConsumerGroup):
            return Draft(known)
        if known is None:
            return Draft(ConsumerGroup(SnapshotRegistry(), group_id))
        if isinstance(known, ClassicGroup):
            if known.is_empty:
                return Draft(ConsumerGroup(SnapshotRegistry(), group_id), [records.group_tombstone(group_id)])
            if migration.may_upgrade(known, self._options):
                return self._upgraded(known)
        raise errors.GroupIdNotFound(f"Group {group_id} is not a consumer group.")

    # Changing the protocol

    def _upgraded(self, former: ClassicGroup) -> Draft:
        """A draft that converts the classic group to a consumer group."""
        found = migration.upgrade(former, self._cluster)
        group = ConsumerGroup(SnapshotRegistry(), former.group_id)
        for record in found[1:]:
            _replay(group, record.key, record.value)
        return Draft(group, found)

    def _upgrading(self, former: ClassicGroup, result: HeartbeatResult) -> HeartbeatResult:
        def committed(_: int) -> None:
            self._on_upgraded(former)
            group = self.coordination.find(former.group_id)
            if group is not None:
                self.coordination.resume(group)

        return Result(
            records=result.records, response=result.response, on_committed=committed, on_failed=result.on_failed
        )

    def downgrade_soon(self, group_id: str) -> None:
        """Downgrade the group if the member that changed its protocol was the last one of the consumer protocol."""
        group = self.coordination.find(group_id)
        if group is not None and migration.may_downgrade(group, None, self._options, self._classic):
            self._timers.schedule(
                ("consumer-downgrade", group_id), 0, lambda now_ms: self._downgrade_now(group_id, now_ms)
            )

    def _downgrade_now(self, group_id: str, now_ms: int) -> GroupResult:
        group = self.coordination.find(group_id)
        result = None if group is None else self._downgrade(group, None, now_ms)
        return Result() if result is None else result

    def _downgrade(self, group: ConsumerGroup, leaving: ConsumerMember | None, now_ms: int) -> GroupResult | None:
        if not migration.may_downgrade(group, leaving, self._options, self._classic):
            return None
        members = list(group.members)

        def committed(later_ms: int) -> None:
            for member_id in members:
                self.coordination.forget(group, member_id)
            self._on_downgraded(group.group_id, later_ms)

        found = migration.downgrade(group, leaving, self._cluster, now_ms)
        return Result(records=found, on_committed=committed)

    # Describing and deleting groups

    def describe(self, group_id: str, at: int) -> DescribedConsumerGroup:
        group = self._groups.get_at(group_id, at)
        if group is None:
            return description.not_found(group_id, f"Group {group_id} not found.")
        if not isinstance(group, ConsumerGroup):
            return description.not_found(group_id, f"Group {group_id} is not a consumer group.")
        return description.describe(group, self._cluster, self._offered, at)

    def tombstones(self, group: ConsumerGroup) -> list[GroupRecord]:
        return writing.group_tombstones(group)


def _replay(group: ConsumerGroup, key: Any, value: Any) -> None:
    match key:
        case ConsumerGroupMetadataKey():
            if value is not None:
                group.replay_group(value)
        case ConsumerGroupMemberMetadataKey():
            group.replay_member(key.member_id, value)
        case ConsumerGroupTargetAssignmentMetadataKey():
            group.replay_target_epoch(0 if value is None else value.assignment_epoch)
        case ConsumerGroupTargetAssignmentMemberKey():
            target = None if value is None else assignment.from_wire(value.topic_partitions)
            group.replay_target(key.member_id, target)
        case ConsumerGroupCurrentMemberAssignmentKey():
            group.replay_current(key.member_id, value)
        case ConsumerGroupRegularExpressionKey():
            group.replay_regex(key.regular_expression, value)
        case _:
            # Topic metadata was once stored in these records; the hash in the group's own record has replaced it.
            return
