"""The share groups of one ``__consumer_offsets`` partition; the group shard hands over to it what concerns them.

Groups of all kinds have their ids in common: the shard sees to it that an id is only ever one kind of group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.share import initialising, listing
from millbeck.coordinator.group.share.draft import Draft
from millbeck.coordinator.group.share.group import STATES, ShareGroup
from millbeck.coordinator.group.share.membership import Membership
from millbeck.coordinator.group.share.records import ShareGroupMetadataKey
from millbeck.coordinator.group.share.surroundings import Begin, MembershipSettings, Place, StateKeeper, Topics
from millbeck.coordinator.protocol_config import ShareProtocolOptions
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.timer import Timers
from millbeck.kernel import errors
from millbeck.kernel.ids import Uuid
from millbeck.kernel.timeline import SnapshotRegistry, TimelineDict
from millbeck.wire.messages.list_groups import ListedGroup
from millbeck.wire.messages.share_group_describe import DescribedGroup
from millbeck.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

BuildShareGroups = Callable[[SnapshotRegistry, Timers[GroupRecord], Topics], "ShareGroups"]


class StartsAt(NamedTuple):
    """Where a group is to begin anew."""

    topic_id: Uuid
    topic_name: str
    partition: int
    start_offset: int


class Beginning(NamedTuple):
    """What the share coordinator is to be told after a group's start was set."""

    state_epoch: int
    beginnings: list[Begin]


class ShareGroups:
    def __init__(
        self,
        registry: SnapshotRegistry,
        timers: Timers[GroupRecord],
        options: ShareProtocolOptions,
        topics: Topics,
        keeper: StateKeeper,
        settings: Mapping[str, MembershipSettings],
    ) -> None:
        self._groups: TimelineDict[str, ShareGroup] = TimelineDict(registry)
        self._options = options
        self._topics = topics
        self._membership = Membership(self._groups, timers, options, topics, keeper, settings)

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def group(self, group_id: str) -> ShareGroup:
        """Raises GROUP_ID_NOT_FOUND."""
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
            self._membership.resume(group)

    # Membership

    def heartbeat(
        self, request: ShareGroupHeartbeatRequest, *, client_id: str, client_host: str, now_ms: int
    ) -> Result[GroupRecord, ShareGroupHeartbeatResponse]:
        return self._membership.heartbeat(request, client_id=client_id, client_host=client_host, now_ms=now_ms)

    def initialized(self, group_id: str, done: list[Place], now_ms: int) -> Result[GroupRecord, Any]:
        return self._membership.initialized(group_id, done, now_ms)

    # Seen from outside

    def list_groups(self, states: Sequence[str], types: Sequence[str], at: int) -> list[ListedGroup]:
        return listing.list_groups(self._groups.copy_at(at).values(), states, types)

    def describe(self, group_id: str, at: int) -> DescribedGroup:
        return listing.describe(group_id, self._groups.get_at(group_id, at), self._topics, self._options.assignors[0])

    def places(self, group_id: str, at: int) -> dict[Uuid, tuple[int, ...]]:
        """The share partitions that have begun. Raises GROUP_ID_NOT_FOUND."""
        group = self._groups.get_at(group_id, at)
        if group is None:
            raise errors.GroupIdNotFound(f"Group {group_id} not found.")
        return dict(group.topics.initialized)

    # Starting anew, and the end

    def set_starts(self, group_id: str, starts: Sequence[StartsAt]) -> Result[GroupRecord, Beginning]:
        """AlterShareGroupOffsets: record that these begin anew; the share coordinator is told afterwards.

        A group that is not there yet comes about, so that its first member finds where it is to begin.
        """
        group = self._empty_group(group_id) if group_id in self._groups else ShareGroup(group_id=group_id)
        draft = Draft(group)
        draft.raise_epoch(group.metadata_hash)
        initialising.begun(draft, [(each.topic_id, each.topic_name, each.partition) for each in starts])
        beginnings = [Begin(each.topic_id, each.partition, each.start_offset) for each in starts]
        return Result(records=draft.records, response=Beginning(draft.group.epoch, beginnings))

    def begin_deletion(self, group_id: str, names: Mapping[Uuid, str]) -> Result[GroupRecord, list[Place]]:
        """DeleteShareGroupOffsets: the share partitions of these topics are to go; which they are."""
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
            initialising.delete(draft, found)
        return Result(records=draft.records, response=places)

    def end_deletion(self, group_id: str, topic_ids: Iterable[Uuid]) -> Result[GroupRecord, bool]:
        group = self._groups.get(group_id)
        if group is None:
            return Result(response=True)
        draft = Draft(group)
        initialising.deleted(draft, topic_ids)
        return Result(records=draft.records, response=True)

    def places_to_forget(self, group_ids: Iterable[str]) -> dict[str, list[Place]]:
        """Of the share groups among these that may be deleted, the share partitions whose state goes with them."""
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
        """The records that make an end of an empty group. Raises NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND."""
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
            draft = Draft(group)
            if initialising.deleted(draft, topic_ids):
                found += draft.records
        return found

    # Metrics

    def counts(self) -> dict[str, int]:
        """How many groups there are in each state."""
        counts = dict.fromkeys(STATES, 0)
        for group in self._groups.values():
            counts[group.state] += 1
        return counts

    @property
    def rebalance_count(self) -> int:
        return self._membership.rebalance_count


class _NoCoordinator:
    def initialize(self, group_id: str, state_epoch: int, beginnings: list[Begin]) -> None:
        """Nobody keeps anything: share partitions never begin."""


def without_coordinator(registry: SnapshotRegistry, timers: Timers[GroupRecord], topics: Topics) -> ShareGroups:
    """Share groups that nothing can be assigned in, for a shard that is on its own."""
    return ShareGroups(registry, timers, ShareProtocolOptions.of(), topics, _NoCoordinator(), {})
