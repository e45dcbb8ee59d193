"""Commit offsets to the group coordinator and fetch committed ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millbeck.client.cluster import COORDINATOR, Cluster
from millbeck.client.committed_offset import CommittedOffset, Committer
from millbeck.client.offset_requests import NAMES_BY_ID_FROM, fetch_committed
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.kernel.ids import ZERO_UUID, TopicPartition
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)


async def commit(
    cluster: Cluster,
    group_id: str,
    committer: Callable[[], Committer],
    offsets: Mapping[TopicPartition, CommittedOffset],
    *,
    timeout_s: float,
) -> None:
    """Commit all offsets, retrying retriable errors; raises the first other error."""

    async def attempt(deadline: Deadline) -> None:
        try:
            await _commit_once(cluster, group_id, committer(), offsets, deadline)
        except ApiError as error:
            if error.retriable:
                cluster.forget_coordinator(group_id)
            raise

    await cluster.retrying(attempt, timeout_s=timeout_s)


async def _commit_once(
    cluster: Cluster,
    group_id: str,
    committer: Committer,
    offsets: Mapping[TopicPartition, CommittedOffset],
    deadline: Deadline,
) -> None:
    topics: dict[str, OffsetCommitRequestTopic] = {}
    has_ids = True
    for (topic, number), committed in offsets.items():
        entry = topics.get(topic)
        if entry is None:
            topic_id = cluster.metadata.topic_id(topic)
            has_ids = has_ids and topic_id != ZERO_UUID
            entry = topics[topic] = OffsetCommitRequestTopic(name=topic, topic_id=topic_id)
        entry.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=number,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    node_id = await cluster.coordinator(group_id, deadline=deadline)
    response = await cluster.request(
        OffsetCommitRequest(
            group_id=group_id,
            generation_id_or_member_epoch=committer.generation,
            member_id=committer.member_id,
            group_instance_id=committer.instance_id,
            topics=list(topics.values()),
        ),
        OffsetCommitResponse,
        deadline=deadline,
        node_id=node_id,
        purpose=COORDINATOR,
        version_max=None if has_ids else NAMES_BY_ID_FROM - 1,
    )
    for result in response.topics:
        for partition in result.partitions:
            if partition.error_code:
                raise from_code(partition.error_code)


async def committed(
    cluster: Cluster,
    group_id: str,
    partitions: list[TopicPartition],
    *,
    timeout_s: float,
    require_stable: bool = False,
) -> dict[TopicPartition, CommittedOffset]:
    """The group's committed offsets; partitions without one are left out."""

    async def attempt(deadline: Deadline) -> dict[TopicPartition, CommittedOffset]:
        try:
            node_id = await cluster.coordinator(group_id, deadline=deadline)
            fetched = await fetch_committed(
                cluster, node_id, group_id, partitions, deadline=deadline, require_stable=require_stable
            )
            found: dict[TopicPartition, CommittedOffset] = {}
            for partition, entry in fetched.items():
                if entry.error_code:
                    raise from_code(entry.error_code)
                if entry.committed_offset >= 0:
                    found[partition] = CommittedOffset(
                        entry.committed_offset, entry.committed_leader_epoch, entry.metadata or ""
                    )
            return found
        except ApiError as error:
            if error.retriable:
                cluster.forget_coordinator(group_id)
            raise

    return await cluster.retrying(attempt, timeout_s=timeout_s)
