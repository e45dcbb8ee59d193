"""Removal of committed offsets: by request, with their group, with their topic, or by expiration.

An offset with its own expire timestamp expires at that time. Otherwise ``offsets.retention.minutes`` applies: for a
group whose members join, from the time it became empty; for topics its members no longer subscribe to, and for
consumers that assign partitions manually, from the commit. In consumer and streams groups retention always counts
from the commit. Offsets pending in an open transaction do not expire.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from millbeck.coordinator.group.classic.group import ClassicGroup
from millbeck.coordinator.group.classic.state import GroupState
from millbeck.coordinator.group.consumer.group import ConsumerGroup
from millbeck.coordinator.group.offsets.store import OffsetAndMetadata, OffsetStore
from millbeck.coordinator.group.records import NO_TIMESTAMP, GroupRecord, offset_tombstone
from millbeck.coordinator.group.streams.group import StreamsGroup
from millbeck.coordinator.runtime.result import Result
from millbeck.kernel import errors
from millbeck.kernel.ids import ZERO_UUID
from millbeck.wire.messages.group_offsets import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

Group = ClassicGroup | ConsumerGroup | StreamsGroup


def delete(
    store: OffsetStore, group: Group | None, request: OffsetDeleteRequest
) -> Result[GroupRecord, OffsetDeleteResponse]:
    """Handle OffsetDelete. Offsets of topics that members subscribe to are not deleted."""
    if group is None or group.state is GroupState.DEAD:
        raise errors.GroupIdNotFound()
    if isinstance(group, ClassicGroup) and not group.is_empty and not group.uses_consumer_protocol:
        raise errors.NonEmptyGroup()
    records: list[GroupRecord] = []
    topics = [_delete_topic(store, group, topic, records) for topic in request.topics]
    return Result(records=records, response=OffsetDeleteResponse(topics=topics), is_atomic=False)


def _delete_topic(
    store: OffsetStore, group: Group, topic: OffsetDeleteRequestTopic, records: list[GroupRecord]
) -> OffsetDeleteResponseTopic:
    is_subscribed = group.is_subscribed_to(topic.name)
    code = errors.GroupSubscribedToTopic.code if is_subscribed else errors.NONE
    for partition in topic.partitions:
        place = (group.group_id, topic.name, partition.partition_index)
        if not is_subscribed and (store.get(*place) is not None or store.is_pending(*place)):
            records.append(offset_tombstone(*place))
    return OffsetDeleteResponseTopic(
        topic.name, [OffsetDeleteResponsePartition(partition.partition_index, code) for partition in topic.partitions]
    )


def all_of_group(store: OffsetStore, group_id: str) -> list[GroupRecord]:
    """Tombstones for all of the group's offsets, including those in open transactions."""
    places = dict.fromkeys([*store.of_group(group_id), *store.pending_places(group_id)])
    return [offset_tombstone(group_id, topic, partition) for topic, partition in places]


def all_of_topics(store: OffsetStore, deleted: Sequence[tuple[str, bytes]]) -> list[GroupRecord]:
    """Tombstones for committed offsets of deleted topics, given as (name, id).

    An offset whose topic id belongs to another topic of the same name is kept.
    """
    ids_by_name: dict[str, list[bytes]] = {}
    for name, topic_id in deleted:
        ids_by_name.setdefault(name, []).append(topic_id)

    def is_gone(topic: str, committed: OffsetAndMetadata) -> bool:
        ids = ids_by_name.get(topic)
        return ids is not None and (committed.topic_id == ZERO_UUID or committed.topic_id in ids)

    places: dict[tuple[str, str, int], None] = {}
    for group_id in store.group_ids():
        for (topic, partition), committed in store.of_group(group_id).items():
            if is_gone(topic, committed):
                places[group_id, topic, partition] = None
    for place, committed in store.all_pending():
        if is_gone(place[1], committed):
            places[place] = None
    return [offset_tombstone(*place) for place in places]


def expire(store: OffsetStore, group: Group, *, retention_ms: int, now_ms: int) -> tuple[list[GroupRecord], bool]:
    """Return tombstones for the group's expired offsets, and whether no offsets are left."""
    committed_by_place = store.of_group(group.group_id)
    if not committed_by_place:
        return [], not store.has_pending(group.group_id)
    base_of = _retention_base(group)
    if base_of is None:
        return [], False
    records: list[GroupRecord] = []
    is_any_left = False
    for (topic, partition), committed in committed_by_place.items():
        if committed.has_own_expiry:
            is_expired = now_ms >= committed.expire_timestamp_ms
        else:
            is_expired = now_ms - base_of(committed) >= retention_ms
        if is_expired and not group.is_subscribed_to(topic) and not store.is_pending(group.group_id, topic, partition):
            records.append(offset_tombstone(group.group_id, topic, partition))
        else:
            is_any_left = True
    return records, not is_any_left and not store.has_pending(group.group_id)


def _retention_base(group: Group) -> Callable[[OffsetAndMetadata], int] | None:
    """Return a function for the start of an offset's retention; None if no offset of the group may expire now."""
    if not isinstance(group, ClassicGroup):
        return _committed_at
    if group.protocol_type is None:
        return _committed_at
    if group.is_empty:
        empty_since_ms = group.state_timestamp_ms
        return _committed_at if empty_since_ms == NO_TIMESTAMP else lambda _: empty_since_ms
    if group.state is GroupState.STABLE and group.subscribed_topics is not None:
        return _committed_at
    return None


def _committed_at(committed: OffsetAndMetadata) -> int:
    return committed.commit_timestamp_ms
