"""Admin calls for topics: create, delete, list, describe, add partitions, delete records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.results import (
    ConfigEntry,
    CreatedTopic,
    NewPartitions,
    NewTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from millbeck.client.admin.routing import call_controller, call_leaders, refresh_controller
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.kernel.ids import TopicPartition, Uuid

PAGE_PARTITIONS_MAX: Final = 2000
_PAGES_MAX: Final = 100_000


def _timeout_ms(cluster: Cluster, deadline: Deadline) -> int:
    return max(1, round(cluster.request_timeout_s(deadline) * 1000))


async def create_topics(
    cluster: Cluster, topics: Sequence[NewTopic], *, validate_only: bool, timeout_s: float | None
) -> Outcomes[str, CreatedTopic]:
    from millbeck.wire.messages.topics import (
        CreatableReplicaAssignment,
        CreatableTopic,
        CreatableTopicConfig,
        CreatableTopicResult,
        CreateTopicsRequest,
        CreateTopicsResponse,
    )

    by_name = {topic.name: topic for topic in topics}

    def creatable(topic: NewTopic) -> CreatableTopic:
        return CreatableTopic(
            name=topic.name,
            num_partitions=-1 if topic.assignments else topic.partition_count,
            replication_factor=-1 if topic.assignments else topic.replication_factor,
            assignments=[
                CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
                for partition, brokers in topic.assignments.items()
            ],
            configs=[CreatableTopicConfig(name=name, value=value) for name, value in topic.configs.items()],
        )

    def created(result: CreatableTopicResult) -> CreatedTopic | ApiError:
        if result.error_code:
            return from_code(result.error_code, result.error_message or "")
        configs = (
            ConfigEntry(
                name=entry.name,
                value=entry.value,
                source=entry.config_source,
                is_read_only=entry.read_only,
                is_sensitive=entry.is_sensitive,
            )
            for entry in result.configs or ()
        )
        return CreatedTopic(
            name=result.name,
            topic_id=result.topic_id,
            partition_count=result.num_partitions,
            replication_factor=result.replication_factor,
            configs={entry.name: entry for entry in configs},
        )

    async def attempt(names: list[str], deadline: Deadline) -> Mapping[str, CreatedTopic | ApiError]:
        request = CreateTopicsRequest(
            topics=[creatable(by_name[name]) for name in names],
            timeout_ms=_timeout_ms(cluster, deadline),
            validate_only=validate_only,
        )
        response = await call_controller(cluster, request, CreateTopicsResponse, deadline)
        outcomes = {result.name: created(result) for result in response.topics}
        await refresh_controller(cluster, outcomes, deadline)
        return outcomes

    return await for_each(cluster, by_name, attempt, timeout_s=timeout_s)


async def delete_topics(cluster: Cluster, names: Iterable[str], *, timeout_s: float | None) -> Outcomes[str, Uuid]:
    """Delete topics; returns their ids."""
    from millbeck.wire.messages.topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState

    async def attempt(pending: list[str], deadline: Deadline) -> Mapping[str, Uuid | ApiError]:
        connection = await cluster.any_connection(deadline)
        timeout_ms = _timeout_ms(cluster, deadline)
        request = (
            DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in pending], timeout_ms=timeout_ms)
            if connection.version_of(DeleteTopicsRequest) >= 6
            else DeleteTopicsRequest(topic_names=pending, timeout_ms=timeout_ms)
        )
        response = await connection.request(
            request, DeleteTopicsResponse, timeout_s=cluster.request_timeout_s(deadline)
        )
        outcomes: dict[str, Uuid | ApiError] = {}
        for result in response.responses:
            error = from_code(result.error_code, result.error_message or "") if result.error_code else None
            outcomes[result.name or ""] = error or result.topic_id
        await refresh_controller(cluster, outcomes, deadline)
        return outcomes

    return await for_each(cluster, names, attempt, timeout_s=timeout_s)


async def list_topics(cluster: Cluster, *, timeout_s: float | None) -> dict[str, TopicListing]:
    """Every topic, sorted by name; topics for which the broker returns an error are left out."""

    async def attempt(deadline: Deadline) -> dict[str, TopicListing]:
        response = await cluster.ask_metadata(None, deadline)
        listings = (
            TopicListing(
                name=topic.name or "",
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partition_count=len(topic.partitions),
            )
            for topic in response.topics
            if not topic.error_code
        )
        return {listing.name: listing for listing in sorted(listings, key=lambda listing: listing.name)}

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_topics(
    cluster: Cluster, names: Iterable[str], *, timeout_s: float | None
) -> Outcomes[str, TopicDescription]:
    """Describe topics; uses DescribeTopicPartitions page by page, or Metadata if the broker does not support that."""
    from millbeck.wire.messages.metadata import DescribeTopicPartitionsRequest

    async def attempt(pending: list[str], deadline: Deadline) -> Mapping[str, TopicDescription | ApiError]:
        connection = await cluster.any_connection(deadline)
        assert connection.versions is not None
        if connection.versions.supports(DescribeTopicPartitionsRequest):
            return await _describe_by_pages(cluster, pending, deadline)
        return await _describe_by_metadata(cluster, pending, deadline)

    return await for_each(cluster, names, attempt, timeout_s=timeout_s)


async def _describe_by_pages(
    cluster: Cluster, names: list[str], deadline: Deadline
) -> dict[str, TopicDescription | ApiError]:
    from millbeck.wire.messages.metadata import (
        Cursor,
        DescribeTopicPartitionsRequest,
        DescribeTopicPartitionsResponse,
        DescribeTopicPartitionsResponsePartition,
        DescribeTopicPartitionsTopic,
    )

    def partition_of(found: DescribeTopicPartitionsResponsePartition) -> PartitionDescription:
        eligible, last_known = found.eligible_leader_replicas, found.last_known_elr
        return PartitionDescription(
            partition=found.partition_index,
            leader_id=found.leader_id,
            leader_epoch=found.leader_epoch,
            replicas=tuple(found.replica_nodes),
            in_sync=tuple(found.isr_nodes),
            offline=tuple(found.offline_replicas),
            eligible_leaders=None if eligible is None else tuple(eligible),
            last_known_eligible_leaders=None if last_known is None else tuple(last_known),
            error=from_code(found.error_code) if found.error_code else None,
        )

    outcomes: dict[str, TopicDescription | ApiError] = {}
    cursor: Cursor | None = None
    for _ in range(_PAGES_MAX):
        request = DescribeTopicPartitionsRequest(
            topics=[DescribeTopicPartitionsTopic(name=name) for name in sorted(names)],
            response_partition_limit=PAGE_PARTITIONS_MAX,
            cursor=cursor,
        )
        response = await cluster.request(request, DescribeTopicPartitionsResponse, deadline=deadline)
        for topic in response.topics:
            name = topic.name or ""
            if topic.error_code:
                outcomes[name] = from_code(topic.error_code)
                continue
            before = outcomes.get(name)
            outcomes[name] = TopicDescription(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=(
                    *(before.partitions if isinstance(before, TopicDescription) else ()),
                    *map(partition_of, topic.partitions),
                ),
                authorized_operations=topic.topic_authorized_operations,
            )
        cursor = response.next_cursor
        if cursor is None:
            break
    return outcomes


async def _describe_by_metadata(
    cluster: Cluster, names: list[str], deadline: Deadline
) -> dict[str, TopicDescription | ApiError]:
    response = await cluster.ask_metadata(names, deadline)
    outcomes: dict[str, TopicDescription | ApiError] = {}
    for topic in response.topics:
        partitions = (
            PartitionDescription(
                partition=found.partition_index,
                leader_id=found.leader_id,
                leader_epoch=found.leader_epoch,
                replicas=tuple(found.replica_nodes),
                in_sync=tuple(found.isr_nodes),
                offline=tuple(found.offline_replicas),
                error=from_code(found.error_code) if found.error_code else None,
            )
            for found in sorted(topic.partitions, key=lambda found: found.partition_index)
        )
        name = topic.name or ""
        outcomes[name] = (
            from_code(topic.error_code)
            if topic.error_code
            else TopicDescription(
                name=name,
                topic_id=topic.topic_id,
                is_internal=topic.is_internal,
                partitions=tuple(partitions),
                authorized_operations=topic.topic_authorized_operations,
            )
        )
    return outcomes


async def create_partitions(
    cluster: Cluster, topics: Mapping[str, NewPartitions], *, validate_only: bool, timeout_s: float | None
) -> Outcomes[str, NewPartitions]:
    from millbeck.wire.messages.topics import (
        CreatePartitionsAssignment,
        CreatePartitionsRequest,
        CreatePartitionsResponse,
        CreatePartitionsTopic,
    )

    def assignments_of(added: NewPartitions) -> list[CreatePartitionsAssignment] | None:
        if added.assignments is None:
            return None
        return [CreatePartitionsAssignment(broker_ids=list(brokers)) for brokers in added.assignments]

    async def attempt(names: list[str], deadline: Deadline) -> Mapping[str, NewPartitions | ApiError]:
        request = CreatePartitionsRequest(
            topics=[
                CreatePartitionsTopic(
                    name=name, count=topics[name].total_count, assignments=assignments_of(topics[name])
                )
                for name in names
            ],
            timeout_ms=_timeout_ms(cluster, deadline),
            validate_only=validate_only,
        )
        response = await call_controller(cluster, request, CreatePartitionsResponse, deadline)
        outcomes: dict[str, NewPartitions | ApiError] = {}
        for result in response.results:
            error = from_code(result.error_code, result.error_message or "") if result.error_code else None
            outcomes[result.name] = error or topics[result.name]
        await refresh_controller(cluster, outcomes, deadline)
        return outcomes

    return await for_each(cluster, topics, attempt, timeout_s=timeout_s)


async def delete_records(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], *, timeout_s: float | None
) -> Outcomes[TopicPartition, int]:
    """Delete records; returns the new log start offsets."""
    from millbeck.wire.messages.topics import (
        DeleteRecordsPartition,
        DeleteRecordsRequest,
        DeleteRecordsResponse,
        DeleteRecordsTopic,
    )

    async def attempt(pending: list[TopicPartition], deadline: Deadline) -> Mapping[TopicPartition, int | ApiError]:
        async def ask(node_id: int, led: list[TopicPartition]) -> Mapping[TopicPartition, int | ApiError]:
            topics: dict[str, list[DeleteRecordsPartition]] = {}
            for partition in led:
                topics.setdefault(partition.topic, []).append(
                    DeleteRecordsPartition(partition_index=partition.partition, offset=offsets[partition])
                )
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=name, partitions=entries) for name, entries in topics.items()],
                timeout_ms=_timeout_ms(cluster, deadline),
            )
            response = await cluster.request(request, DeleteRecordsResponse, deadline=deadline, node_id=node_id)
            return {
                TopicPartition(topic.name, result.partition_index): (
                    from_code(result.error_code) if result.error_code else result.low_watermark
                )
                for topic in response.topics
                for result in topic.partitions
            }

        return await call_leaders(cluster, pending, ask, deadline)

    return await for_each(cluster, offsets, attempt, timeout_s=timeout_s)
