"""Offset requests used by consumer and admin client: ListOffsets and OffsetFetch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from millbeck.client.cluster import COORDINATOR, GENERAL, Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.kernel.ids import ZERO_UUID, TopicPartition
from millbeck.wire.messages.group_offsets import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
)
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

NAMES_BY_ID_FROM: Final = 10
"""The first version of OffsetFetch and OffsetCommit that identifies topics by id."""
_GROUPS_FROM: Final = 8

_VERSION_OF_TIMESTAMP: Final = {-3: 7, -4: 8, -5: 9, -6: 11}

FetchedOffset = OffsetFetchResponsePartition | OffsetFetchResponsePartitions


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return topics


async def list_offsets(
    cluster: Cluster,
    node_id: int,
    timestamps: Mapping[TopicPartition, int],
    *,
    isolation_level: int,
    deadline: Deadline,
    checks_epochs: bool = False,
) -> dict[TopicPartition, ListOffsetsPartitionResponse | ApiError]:
    """ListOffsets for partitions led by one broker."""
    metadata = cluster.metadata
    topics = [
        ListOffsetsTopic(
            name=topic,
            partitions=[
                ListOffsetsPartition(
                    partition_index=partition,
                    current_leader_epoch=metadata.partition(topic, partition).leader_epoch if checks_epochs else -1,
                    timestamp=timestamps[TopicPartition(topic, partition)],
                )
                for partition in partitions
            ],
        )
        for topic, partitions in by_topic(timestamps).items()
    ]
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=topics,
        timeout_ms=round(cluster.request_timeout_s(deadline) * 1000),
    )
    needed = max((_VERSION_OF_TIMESTAMP.get(timestamp, 0) for timestamp in timestamps.values()), default=0)
    response = await cluster.request(
        request,
        ListOffsetsResponse,
        deadline=deadline,
        node_id=node_id,
        purpose=GENERAL,
        version_min=max(needed, 2 if isolation_level else 0),
    )
    return {
        partition: error_of(partition, found.error_code) if found.error_code else found
        for topic in response.topics
        for found in topic.partitions
        for partition in [TopicPartition(topic.name, found.partition_index)]
    }


def error_of(partition: TopicPartition, code: int) -> ApiError:
    """The error of one partition, with the partition in its message."""
    error = from_code(code)
    return type(error)(f"{partition}: {error}")


async def fetch_committed(
    cluster: Cluster,
    node_id: int,
    group_id: str,
    partitions: Iterable[TopicPartition] | None,
    *,
    deadline: Deadline,
    require_stable: bool = False,
) -> dict[TopicPartition, FetchedOffset]:
    """OffsetFetch for one group: offset -1 for partitions without a committed offset. None: all partitions."""
    connection = await cluster.connection(node_id, COORDINATOR, deadline=deadline)
    topics = None if partitions is None else by_topic(partitions)
    ids = _ids_of(cluster, topics)
    version = connection.version_of(OffsetFetchRequest, None if ids is not None else NAMES_BY_ID_FROM - 1)
    request: OffsetFetchRequest
    if version >= _GROUPS_FROM:
        entries = None
        if topics is not None:
            entries = [
                OffsetFetchRequestTopics(
                    name=name, topic_id=(ids or {}).get(name, ZERO_UUID), partition_indexes=numbers
                )
                for name, numbers in topics.items()
            ]
        group = OffsetFetchRequestGroup(group_id=group_id, topics=entries)
        request = OffsetFetchRequest(groups=[group], require_stable=require_stable)
    else:
        named = None
        if topics is not None:
            named = [OffsetFetchRequestTopic(name=name, partition_indexes=numbers) for name, numbers in topics.items()]
        request = OffsetFetchRequest(group_id=group_id, topics=named, require_stable=require_stable and version >= 7)
    response = await connection.request(
        request, OffsetFetchResponse, timeout_s=cluster.request_timeout_s(deadline), version_max=version
    )
    return _committed_of(response, {} if ids is None else {topic_id: name for name, topic_id in ids.items()})


def _ids_of(cluster: Cluster, topics: Iterable[str] | None) -> dict[str, bytes] | None:
    """The ids of all these topics, or None if one is unknown and names must be used.

    Requests for all partitions also use names: ids of topics unknown here could not be mapped to names.
    """
    if topics is None:
        return None
    ids = {name: cluster.metadata.topic_id(name) for name in topics}
    return None if ZERO_UUID in ids.values() else ids


def _committed_of(response: OffsetFetchResponse, names: Mapping[bytes, str]) -> dict[TopicPartition, FetchedOffset]:
    found: dict[TopicPartition, FetchedOffset] = {}
    for group in response.groups:
        if group.error_code:
            raise from_code(group.error_code)
        for topic in group.topics:
            name = topic.name or names.get(topic.topic_id, "")
            for entry in topic.partitions:
                found[TopicPartition(name, entry.partition_index)] = entry
    if response.error_code:
        raise from_code(response.error_code)
    for old_topic in response.topics:
        for old_entry in old_topic.partitions:
            found[TopicPartition(old_topic.name, old_entry.partition_index)] = old_entry
    return found
