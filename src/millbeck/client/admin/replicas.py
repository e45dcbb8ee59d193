"""Admin calls for replicas: elect leaders, reassign partitions, move replicas between directories, unregister
brokers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from millbeck.client.admin.outcomes import Outcomes, for_each
from millbeck.client.admin.results import Reassignment
from millbeck.client.admin.routing import call_all_brokers, call_controller, refresh_controller
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, UnknownServerError, from_code
from millbeck.kernel.ids import TopicPartition


def _timeout_ms(cluster: Cluster, deadline: Deadline) -> int:
    return max(1, round(cluster.request_timeout_s(deadline) * 1000))


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for name, index in partitions:
        topics.setdefault(name, []).append(index)
    return topics


async def elect_leaders(
    cluster: Cluster,
    partitions: Iterable[TopicPartition] | None,
    *,
    unclean: bool,
    timeout_s: float | None,
) -> Outcomes[TopicPartition, None]:
    """Elect leaders; with None for all partitions, and then only partitions that need an election are in the result."""
    from millbeck.wire.messages.replicas import ElectLeadersRequest, ElectLeadersResponse, ElectLeadersTopicPartitions

    wanted = None if partitions is None else _by_topic(partitions)

    async def attempt(deadline: Deadline) -> Outcomes[TopicPartition, None]:
        request = ElectLeadersRequest(
            election_type=int(unclean),
            topic_partitions=None
            if wanted is None
            else [ElectLeadersTopicPartitions(topic=name, partitions=indexes) for name, indexes in wanted.items()],
            timeout_ms=_timeout_ms(cluster, deadline),
        )
        response = await call_controller(cluster, request, ElectLeadersResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code)
        return Outcomes(
            {
                TopicPartition(topic.topic, result.partition_id): from_code(
                    result.error_code, result.error_message or ""
                )
                if result.error_code
                else None
                for topic in response.replica_election_results
                for result in topic.partition_result
            }
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def alter_replica_log_dirs(
    cluster: Cluster, places: Mapping[tuple[int, TopicPartition], str], *, timeout_s: float | None
) -> Outcomes[tuple[int, TopicPartition], bool]:
    """Move replicas to the given directories. A broker without the replica (it may not have created it yet) answers
    REPLICA_NOT_AVAILABLE; that is not retried here."""
    from millbeck.wire.messages.replicas import (
        AlterReplicaLogDir,
        AlterReplicaLogDirsRequest,
        AlterReplicaLogDirsResponse,
        AlterReplicaLogDirTopic,
    )

    def request_of(broker_id: int) -> AlterReplicaLogDirsRequest:
        by_path: dict[str, list[TopicPartition]] = {}
        for (asked, partition), path in places.items():
            if asked == broker_id:
                by_path.setdefault(path, []).append(partition)
        return AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[AlterReplicaLogDirTopic(name, indexes) for name, indexes in _by_topic(partitions).items()],
                )
                for path, partitions in by_path.items()
            ]
        )

    async def attempt(deadline: Deadline) -> Outcomes[tuple[int, TopicPartition], bool]:
        async def ask(broker_id: int) -> dict[TopicPartition, int]:
            response = await cluster.request(
                request_of(broker_id), AlterReplicaLogDirsResponse, deadline=deadline, node_id=broker_id
            )
            return {
                TopicPartition(topic.topic_name, result.partition_index): result.error_code
                for topic in response.results
                for result in topic.partitions
            }

        answers = await call_all_brokers(cluster, ask, deadline, {broker_id for broker_id, _ in places})
        outcomes: dict[tuple[int, TopicPartition], bool | ApiError] = {}
        for broker_id, partition in places:
            answer = answers[broker_id]
            if isinstance(answer, ApiError):
                outcomes[broker_id, partition] = answer
            else:
                code = answer.get(partition, UnknownServerError.code)
                outcomes[broker_id, partition] = from_code(code) if code else True
        return Outcomes(outcomes)

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def alter_reassignments(
    cluster: Cluster, targets: Mapping[TopicPartition, Sequence[int] | None], *, timeout_s: float | None
) -> Outcomes[TopicPartition, bool]:
    """Reassign each partition to the given replicas; None cancels a reassignment. True for each that was accepted."""
    from millbeck.wire.messages.replicas import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
        ReassignablePartition,
        ReassignableTopic,
    )

    def reassignable(partition: TopicPartition) -> ReassignablePartition:
        replicas = targets[partition]
        return ReassignablePartition(partition.partition, None if replicas is None else list(replicas))

    async def attempt(pending: list[TopicPartition], deadline: Deadline) -> Mapping[TopicPartition, bool | ApiError]:
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=_timeout_ms(cluster, deadline),
            topics=[
                ReassignableTopic(name, [reassignable(TopicPartition(name, index)) for index in indexes])
                for name, indexes in _by_topic(pending).items()
            ],
        )
        response = await call_controller(cluster, request, AlterPartitionReassignmentsResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        outcomes: dict[TopicPartition, bool | ApiError] = {
            TopicPartition(topic.name, result.partition_index): from_code(result.error_code, result.error_message or "")
            if result.error_code
            else True
            for topic in response.responses
            for result in topic.partitions
        }
        await refresh_controller(cluster, outcomes, deadline)
        return outcomes

    return await for_each(cluster, targets, attempt, timeout_s=timeout_s)


async def list_reassignments(
    cluster: Cluster, partitions: Iterable[TopicPartition] | None, *, timeout_s: float | None
) -> dict[TopicPartition, Reassignment]:
    """The reassignments in progress, of all partitions if None are given."""
    from millbeck.wire.messages.replicas import (
        ListPartitionReassignmentsRequest,
        ListPartitionReassignmentsResponse,
        ListPartitionReassignmentsTopics,
    )

    wanted = None if partitions is None else _by_topic(partitions)

    async def attempt(deadline: Deadline) -> dict[TopicPartition, Reassignment]:
        request = ListPartitionReassignmentsRequest(
            timeout_ms=_timeout_ms(cluster, deadline),
            topics=None
            if wanted is None
            else [ListPartitionReassignmentsTopics(name, indexes) for name, indexes in wanted.items()],
        )
        response = await call_controller(cluster, request, ListPartitionReassignmentsResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        return {
            TopicPartition(topic.name, moving.partition_index): Reassignment(
                replicas=tuple(moving.replicas),
                adding=tuple(moving.adding_replicas),
                removing=tuple(moving.removing_replicas),
            )
            for topic in response.topics
            for moving in topic.partitions
        }

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def unregister_broker(cluster: Cluster, broker_id: int, *, timeout_s: float | None) -> None:
    """Remove the registration of a broker that will not come back."""
    from millbeck.wire.messages.nodes import UnregisterBrokerRequest, UnregisterBrokerResponse

    async def attempt(deadline: Deadline) -> None:
        request = UnregisterBrokerRequest(broker_id=broker_id)
        response = await call_controller(cluster, request, UnregisterBrokerResponse, deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")

    await cluster.retrying(attempt, timeout_s=timeout_s)
