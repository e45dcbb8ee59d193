"""OffsetFetch: a group's committed offsets. Without a commit the offset is -1 and no error, even for an unknown
group."""

from __future__ import annotations

from millbeck.coordinator.group.offsets.store import LATEST, OffsetAndMetadata, OffsetStore
from millbeck.kernel import errors
from millbeck.kernel.ids import ZERO_UUID
from millbeck.wire.messages.group_offsets import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

NO_OFFSET = -1


def fetch(store: OffsetStore, request: OffsetFetchRequestGroup, at: int, *, is_known: bool) -> OffsetFetchResponseGroup:
    """Return the offsets as of ``at``; with `LATEST`, a partition with an open transaction is answered with
    UNSTABLE_OFFSET_COMMIT.

    Topics of the request have both name and id, in every version.
    """
    if request.topics is None:
        topics = _fetch_all(store, request.group_id, at) if is_known else []
        return OffsetFetchResponseGroup(request.group_id, topics)
    topics = []
    for topic in request.topics:
        partitions = []
        for partition in topic.partition_indexes:
            if at == LATEST and store.is_pending(request.group_id, topic.name, partition):
                partitions.append(unstable(partition))
                continue
            committed = store.get(request.group_id, topic.name, partition, at) if is_known else None
            if committed is not None and _is_other_incarnation(committed.topic_id, topic.topic_id):
                committed = None
            partitions.append(_found(partition, committed))
        topics.append(OffsetFetchResponseTopics(topic.name, topic.topic_id, partitions))
    return OffsetFetchResponseGroup(request.group_id, topics)


def _fetch_all(store: OffsetStore, group_id: str, at: int) -> list[OffsetFetchResponseTopics]:
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for (topic, partition), committed in store.of_group(group_id, at).items():
        found = topics.get(topic)
        if found is None:
            found = topics[topic] = OffsetFetchResponseTopics(topic, committed.topic_id, [])
        is_unstable = at == LATEST and store.is_pending(group_id, topic, partition)
        found.partitions.append(unstable(partition) if is_unstable else _found(partition, committed))
    return list(topics.values())


def _is_other_incarnation(stored_id: bytes, requested_id: bytes) -> bool:
    return ZERO_UUID not in (stored_id, requested_id) and stored_id != requested_id


def _found(partition: int, committed: OffsetAndMetadata | None) -> OffsetFetchResponsePartitions:
    if committed is None:
        return OffsetFetchResponsePartitions(partition, NO_OFFSET, -1, "")
    return OffsetFetchResponsePartitions(partition, committed.offset, committed.leader_epoch, committed.metadata)


def unstable(partition: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(partition, NO_OFFSET, -1, "", errors.UnstableOffsetCommit.code)
