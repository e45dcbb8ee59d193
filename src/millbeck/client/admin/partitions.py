"""Admin calls to partition leaders: list offsets and describe producers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.results import ListedOffset, ProducerDescription
from millbeck.client.admin.routing import call_leaders
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, from_code
from millbeck.kernel.ids import TopicPartition

Producers = tuple[ProducerDescription, ...]


async def list_offsets(
    cluster: Cluster, timestamps: Mapping[TopicPartition, int], *, isolation_level: int, timeout_s: float | None
) -> Outcomes[TopicPartition, ListedOffset]:
    """The offsets by timestamp in milliseconds, or by one of the special timestamps."""
    from millbeck.client import offset_requests

    async def attempt(
        pending: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, ListedOffset | ApiError]:
        async def ask(node_id: int, led: list[TopicPartition]) -> Mapping[TopicPartition, ListedOffset | ApiError]:
            answers = await offset_requests.list_offsets(
                cluster,
                node_id,
                {partition: timestamps[partition] for partition in led},
                isolation_level=isolation_level,
                deadline=deadline,
            )
            return {
                partition: (
                    answer
                    if isinstance(answer, ApiError)
                    else ListedOffset(
                        offset=answer.offset, timestamp=answer.timestamp, leader_epoch=answer.leader_epoch
                    )
                )
                for partition, answer in answers.items()
            }

        return await call_leaders(cluster, pending, ask, deadline)

    return await for_each(cluster, timestamps, attempt, timeout_s=timeout_s)


async def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], *, timeout_s: float | None
) -> Outcomes[TopicPartition, Producers]:
    from millbeck.wire.messages.transactions import (
        DescribeProducersRequest,
        DescribeProducersResponse,
        DescribeProducersTopic,
        ProducerState,
    )

    def producer_of(found: ProducerState) -> ProducerDescription:
        return ProducerDescription(
            producer_id=found.producer_id,
            producer_epoch=found.producer_epoch,
            last_sequence=found.last_sequence,
            last_timestamp=found.last_timestamp,
            coordinator_epoch=found.coordinator_epoch,
            transaction_start_offset=found.current_txn_start_offset,
        )

    async def attempt(
        pending: list[TopicPartition], deadline: Deadline
    ) -> Mapping[TopicPartition, Producers | ApiError]:
        async def ask(node_id: int, led: list[TopicPartition]) -> Mapping[TopicPartition, Producers | ApiError]:
            topics: dict[str, list[int]] = {}
            for topic, partition in led:
                topics.setdefault(topic, []).append(partition)
            request = DescribeProducersRequest(
                topics=[
                    DescribeProducersTopic(name=topic, partition_indexes=numbers) for topic, numbers in topics.items()
                ]
            )
            response = await cluster.request(request, DescribeProducersResponse, deadline=deadline, node_id=node_id)
            return {
                TopicPartition(topic.name, found.partition_index): (
                    from_code(found.error_code, found.error_message or "")
                    if found.error_code
                    else tuple(map(producer_of, found.active_producers))
                )
                for topic in response.topics
                for found in topic.partitions
            }

        return await call_leaders(cluster, pending, ask, deadline)

    return await for_each(cluster, partitions, attempt, timeout_s=timeout_s)
