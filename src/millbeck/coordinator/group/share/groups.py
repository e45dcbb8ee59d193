"""The share groups of one ``__consumer_offsets`` partition; the group shard delegates to it.

Groups of all types share one id space: the group shard ensures that an id belongs to one type only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.share import initialization, listing
from millbeck.coordinator.group.share.assignor import Assignor, assign
from millbeck.coordinator.group.share.context import MembershipSettings, PartitionStart, Place, StateInitializer, Topics
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import STATES, ShareGroup
from millbeck.coordinator.group.share.membership import ShareGroupMembership
from millbeck.coordinator.group.share.records import ShareGroupMetadataKey
from millbeck.coordinator.protocol_config import ShareProtocolOptions
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel import errors
from millbeck.kernel.ids import Uuid
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict
from millbeck.wire.messages.groups import ListedGroup
from millbeck.wire.messages.share_groups import (
    DescribedShareGroup,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

BuildShareGroups = Callable[[SnapshotRegistry, Timers[GroupRecord], Topics], "ShareGroups"]


class StartOffset(NamedTuple):
    """The new start offset of a share partition."""

    topic_id: Uuid
    topic_name: str
    partition: int
    start_offset: int


class StateInitialization(NamedTuple):
    """The request to the share coordinator after start offsets were set."""

    state_epoch: int
    beginnings: list[PartitionStart]


class ShareGroups:
    def __init__(
        self,
        registry: SnapshotRegistry,
        timers: Timers[GroupRecord],
        options: ShareProtocolOptions,
        topics: Topics,
        initializer: StateInitializer,
        settings: Mapping[str, MembershipSettings],
        assignor: Assignor = assign,
    ) -> None:
        self._groups: TimelineDict[str, ShareGroup] = TimelineDict(registry)
        self._options = options
        self._isolation = timers.isolation
        self._topics = topics
        self._membership = ShareGroupMembership(self._groups, timers, options, topics, initializer, settings, assignor)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def group(self, group_id: str) -> ShareGroup:
        """Return the group; raises GROUP_ID_NOT_FOUND."""
        group = self._groups.get(group_id)
        if group is None:
            raise errors.GroupIdNotFound(f"Group {group_id} not found.")
        return group

    # Records

    def replay(self, key: Any, value: Any) -> None:
        group_id: str = key.group_id
        group = self._groups.get(group_id)
        if isinstance(key, ShareGroupMetadataKey) and value is None:
            self._groups.pop(group_id, None)
            self._membership.forget(group_id)
        elif group is not None or value is not None:
            self._groups[group_id] = (group or ShareGroup(group_id=group_id)).replayed(key, value)

    def on_loaded(self) -> None:
        for group in list(self._groups.values()):
            self._isolation.run(("start timers", group.group_id), partial(self._membership.resume, group))

    # Membership

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, *, client_id: str, client_host: str, now_ms: int
    ) -> Result[GroupRecord, ShareGroupHeartbeatResponse]:
        return self._membership.heartbeat(request, client_id=client_id, client_host=client_host, now_ms=now_ms)

    def initialized(self, group_id: str, done: list[Place], now_ms: int) -> Result[GroupRecord, Any]:
        return self._membership.initialized(group_id, done, now_ms)

    # Listing and describing

    def list_groups(self, states: Sequence[str], types: Sequence[str], at: int) -> list[ListedGroup]:
        return listing.list_groups(self._groups.copy_at(at).values(), states, types)

    def describe(self, group_id: str, at: int) -> DescribedShareGroup:
        return listing.describe(group_id, self._groups.get_at(group_id, at), self._topics, self._options.assignor_name)

    def places(self, group_id: str, at: int) -> dict[Uuid, tuple[int, ...]]:
        """The initialized share partitions of a group; none if it does not exist."""
        group = self._groups.get_at(group_id, at)
        return {} if group is None else dict(group.topics.initialized)

    # Setting start offsets and deletion

    def set_starts(self, group_id: str, starts: Sequence[StartOffset]) -> Result[GroupRecord, StateInitialization]:
        """Handle AlterShareGroupOffsets: mark the share partitions as initialized; the share coordinator is called once
        committed.

        A group that does not exist is created, so that its first member starts at these offsets.
        """
        group = self._empty_group(group_id) if group_id in self._groups else ShareGroup(group_id=group_id)
        draft = Draft(group)
        draft.raise_epoch(group.metadata_hash)
        initialization.begun(draft, [(each.topic_id, each.topic_name, each.partition) for each in starts])
        beginnings = [PartitionStart(each.topic_id, each.partition, each.start_offset) for each in starts]
        return Result(records=draft.records, response=StateInitialization(draft.group.epoch, beginnings))

    def begin_deletion(self, group_id: str, names: Mapping[Uuid, str]) -> Result[GroupRecord, list[Place]]:
        """Handle DeleteShareGroupOffsets: mark the share partitions of these topics for deletion and return them."""
        group = self._empty_group(group_id)
        known = group.topics
        places = [
            (topic, index)
            for topic in names
            for index in (*known.initialized.get(topic, ()), *known.initializing.get(topic, ()))
        ]
        found = {topic: name for topic, name in names.items() if topic in known.names or topic in known.deleting}
        draft = Draft(group)
        if found:
            initialization.delete(draft, found)
        return Result(records=draft.records, response=places)

    def end_deletion(self, group_id: str, topic_ids: Iterable[Uuid]) -> Result[GroupRecord, bool]:
        group = self._groups.get(group_id)
        if group is None:
            return Result(response=True)
        draft = Draft(group)
        initialization.deleted(draft, topic_ids)
        return Result(records=draft.records, response=True)

    def places_to_forget(self, group_ids: Iterable[str]) -> dict[str, list[Place]]:
        """The share partitions whose state must be deleted, for each of these share groups that may be deleted."""
        found = {}
        for group_id in group_ids:
            group = self._groups.get(group_id)
            if group is not None and group.is_empty:
                known = group.topics
                found[group_id] = [
                    (topic, index)
                    for assignment in (known.initialized, known.initializing)
                    for topic, indexes in assignment.items()
                    for index in indexes
                ]
        return found

    def delete(self, group_id: str) -> list[GroupRecord]:
        """The records that delete an empty group. Raises NON_EMPTY_GROUP or GROUP_ID_NOT_FOUND."""
        draft = Draft(self._empty_group(group_id))
        draft.remove_group()
        return draft.records

    def _empty_group(self, group_id: str) -> ShareGroup:
        group = self.group(group_id)
        if not group.is_empty:
            raise errors.NonEmptyGroup(f"Group {group_id} is not empty.")
        return group

    def on_topics_deleted(self, topic_ids: Sequence[Uuid]) -> list[GroupRecord]:
        found: list[GroupRecord] = []
        for group in list(self._groups.values()):
            entity = ("forget topics", group.group_id)
            found += self._isolation.run(entity, partial(_without_topics, group, topic_ids)) or []
        return found

    # Metrics

    def counts(self) -> dict[str, int]:
        """Number of groups by state."""
        counts = dict.fromkeys(STATES, 0)
        for group in self._groups.values():
            counts[group.state] += 1
        return counts

    @property
    def rebalance_count(self) -> int:
        return self._membership.rebalance_count


def _without_topics(group: ShareGroup, topic_ids: Sequence[Uuid]) -> list[GroupRecord]:
    draft = Draft(group)
    return draft.records if initialization.deleted(draft, topic_ids) else []


class _NoCoordinator:
    def initialize(self, group_id: str, state_epoch: int, beginnings: list[PartitionStart]) -> None:
        """Do nothing: share partitions are never initialized."""


def without_coordinator(registry: SnapshotRegistry, timers: Timers[GroupRecord], topics: Topics) -> ShareGroups:
    """Create share groups without a share coordinator, in which no partitions are assigned; for a shard that runs
    alone."""
    return ShareGroups(registry, timers, ShareProtocolOptions.of(), topics, _NoCoordinator(), {})
