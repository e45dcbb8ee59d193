"""Admin calls for the cluster: nodes, log directories, the metadata quorum and features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import (
    ClusterDescription,
    FeatureDescription,
    FeatureUpdate,
    LogDirDescription,
    LogReplica,
    NodeDescription,
    QuorumDescription,
    QuorumReplica,
    UpgradeType,
)
from millbeck.client.admin.routing import call_all_brokers
from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import ApiError, UnknownServerError, from_code
from millbeck.kernel.ids import TopicPartition, Uuid

METADATA_TOPIC: Final = "__cluster_metadata"
OPERATIONS_NOT_ASKED: Final = -(1 << 31)


async def describe_cluster(
    cluster: Cluster,
    *,
    include_authorized_operations: bool,
    include_fenced_brokers: bool = False,
    timeout_s: float | None,
) -> ClusterDescription:
    from millbeck.wire.messages.metadata import DescribeClusterRequest, DescribeClusterResponse

    async def attempt(deadline: Deadline) -> ClusterDescription:
        connection = await cluster.any_connection(deadline)
        assert connection.versions is not None
        if not connection.versions.supports(DescribeClusterRequest):
            return await _describe_by_metadata(cluster, deadline)
        request = DescribeClusterRequest(
            include_cluster_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
        )
        response = await connection.request(
            request, DescribeClusterResponse, timeout_s=cluster.request_timeout_s(deadline)
        )
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=tuple(
                NodeDescription(
                    node_id=node.broker_id, host=node.host, port=node.port, rack=node.rack, is_fenced=node.is_fenced
                )
                for node in sorted(response.brokers, key=lambda node: node.broker_id)
            ),
            authorized_operations=response.cluster_authorized_operations,
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def _describe_by_metadata(cluster: Cluster, deadline: Deadline) -> ClusterDescription:
    response = await cluster.ask_metadata([], deadline)
    return ClusterDescription(
        cluster_id=response.cluster_id,
        controller_id=response.controller_id,
        nodes=tuple(
            NodeDescription(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in sorted(response.brokers, key=lambda node: node.node_id)
        ),
        authorized_operations=OPERATIONS_NOT_ASKED,
    )


async def describe_log_dirs(
    cluster: Cluster, brokers: Iterable[int] | None, *, timeout_s: float | None
) -> Outcomes[int, tuple[LogDirDescription, ...]]:
    """The log directories of the given brokers, or of all."""
    from millbeck.wire.messages.replicas import (
        DescribeLogDirsRequest,
        DescribeLogDirsResponseWithDirtyRatio,
        LogDirWithDirtyRatio,
    )

    wanted = None if brokers is None else list(brokers)

    def directory_of(found: LogDirWithDirtyRatio) -> LogDirDescription:
        return LogDirDescription(
            path=found.log_dir,
            error=from_code(found.error_code) if found.error_code else None,
            total_bytes=found.total_bytes,
            usable_bytes=found.usable_bytes,
            is_cordoned=found.is_cordoned,
            replicas=tuple(
                LogReplica(
                    partition=TopicPartition(topic.name, replica.partition_index),
                    size_bytes=replica.partition_size,
                    offset_lag=replica.offset_lag,
                    is_future=replica.is_future_key,
                    dirty_ratio=replica.dirty_ratio if replica.dirty_ratio >= 0 else None,
                    offline_reason=replica.offline_reason or None,
                )
                for topic in found.topics
                for replica in topic.partitions
            ),
            offline_reason=found.offline_reason or None,
        )

    async def attempt(deadline: Deadline) -> Outcomes[int, tuple[LogDirDescription, ...]]:
        async def ask(node_id: int) -> tuple[LogDirDescription, ...]:
            request = DescribeLogDirsRequest(topics=None)
            response = await cluster.request(
                request, DescribeLogDirsResponseWithDirtyRatio, deadline=deadline, node_id=node_id
            )
            if response.error_code:
                raise from_code(response.error_code)
            return tuple(map(directory_of, response.results))

        return Outcomes(await call_all_brokers(cluster, ask, deadline, wanted))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_quorum(cluster: Cluster, *, timeout_s: float | None) -> QuorumDescription:
    from millbeck.wire.messages import quorum as quorum_messages

    def replica_of(found: quorum_messages.QuorumReplica) -> QuorumReplica:
        return QuorumReplica(
            replica_id=found.replica_id,
            directory_id=found.replica_directory_id,
            log_end_offset=found.log_end_offset,
            last_fetch_timestamp=found.last_fetch_timestamp,
            last_caught_up_timestamp=found.last_caught_up_timestamp,
        )

    async def attempt(deadline: Deadline) -> QuorumDescription:
        request = quorum_messages.DescribeQuorumRequest(
            topics=[
                quorum_messages.DescribeQuorumRequestTopic(
                    topic_name=METADATA_TOPIC,
                    partitions=[quorum_messages.DescribeQuorumRequestPartition(partition_index=0)],
                )
            ]
        )
        response = await cluster.request(request, quorum_messages.DescribeQuorumResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")
        if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
            raise UnknownServerError("the broker did not describe the metadata quorum")
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise from_code(found.error_code, found.error_message or "")
        return QuorumDescription(
            leader_id=found.leader_id,
            leader_epoch=found.leader_epoch,
            high_watermark=found.high_watermark,
            voters=tuple(map(replica_of, found.current_voters)),
            observers=tuple(map(replica_of, found.observers)),
            endpoints={
                node.node_id: tuple((entry.name, entry.host, entry.port) for entry in node.listeners)
                for node in response.nodes
            },
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def add_raft_voter(
    cluster: Cluster,
    node_id: int,
    directory_id: Uuid,
    endpoints: Iterable[tuple[str, str, int]],
    *,
    cluster_id: str | None,
    timeout_s: float | None,
) -> None:
    """Add a voter: a controller that runs as an observer. ``endpoints`` are listener name, host and port."""
    from millbeck.wire.messages.quorum import AddRaftVoterRequest, AddRaftVoterResponse, Listener

    listeners = [Listener(name=name, host=host, port=port) for name, host, port in endpoints]

    async def attempt(deadline: Deadline) -> None:
        request = AddRaftVoterRequest(
            cluster_id=cluster_id,
            timeout_ms=max(1, round(cluster.request_timeout_s(deadline) * 1000)),
            voter_id=node_id,
            voter_directory_id=directory_id,
            listeners=listeners,
        )
        response = await cluster.request(request, AddRaftVoterResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")

    await cluster.retrying(attempt, timeout_s=timeout_s)


async def remove_raft_voter(
    cluster: Cluster, node_id: int, directory_id: Uuid, *, cluster_id: str | None, timeout_s: float | None
) -> None:
    from millbeck.wire.messages.quorum import RemoveRaftVoterRequest, RemoveRaftVoterResponse

    async def attempt(deadline: Deadline) -> None:
        request = RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=node_id, voter_directory_id=directory_id)
        response = await cluster.request(request, RemoveRaftVoterResponse, deadline=deadline)
        if response.error_code:
            raise from_code(response.error_code, response.error_message or "")

    await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_features(cluster: Cluster, *, timeout_s: float | None) -> FeatureDescription:
    from millbeck.client.versions import NodeVersions, identification
    from millbeck.wire.messages.metadata import ApiVersionsResponse

    async def attempt(deadline: Deadline) -> FeatureDescription:
        connection = await cluster.any_connection(deadline)
        response = await connection.request(
            identification(),
            ApiVersionsResponse,
            timeout_s=cluster.request_timeout_s(deadline),
        )
        if response.error_code:
            raise from_code(response.error_code)
        found = NodeVersions(response)
        return FeatureDescription(
            supported=found.supported_features,
            finalized=found.finalized_features,
            finalized_epoch=found.finalized_features_epoch,
        )

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def describe_api_versions(
    cluster: Cluster, *, timeout_s: float | None
) -> Outcomes[int, dict[int, tuple[int, int]]]:
    """The supported version range of each API key, by broker, as returned when the connection was opened."""

    async def attempt(deadline: Deadline) -> Outcomes[int, dict[int, tuple[int, int]]]:
        async def ask(node_id: int) -> dict[int, tuple[int, int]]:
            connection = await cluster.connection(node_id, deadline=deadline)
            assert connection.versions is not None
            return connection.versions.ranges

        return Outcomes(await call_all_brokers(cluster, ask, deadline))

    return await cluster.retrying(attempt, timeout_s=timeout_s)


async def update_features(
    cluster: Cluster, updates: Mapping[str, FeatureUpdate], *, validate_only: bool, timeout_s: float | None
) -> Outcomes[str, FeatureUpdate]:
    from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest, UpdateFeaturesResponse

    async def attempt(deadline: Deadline) -> Outcomes[str, FeatureUpdate]:
        connection = await cluster.any_connection(deadline)
        is_old = connection.version_of(UpdateFeaturesRequest) == 0
        timeout_s = cluster.request_timeout_s(deadline)
        request = UpdateFeaturesRequest(
            timeout_ms=max(1, round(timeout_s * 1000)),
            feature_updates=[
                FeatureUpdateKey(
                    feature=name,
                    max_version_level=update.level,
                    allow_downgrade=is_old and update.upgrade_type is not UpgradeType.UPGRADE,
                    upgrade_type=UpgradeType.UPGRADE if is_old else update.upgrade_type,
                )
                for name, update in updates.items()
            ],
            validate_only=validate_only,
        )
        response = await connection.request(request, UpdateFeaturesResponse, timeout_s=timeout_s)
        if response.error_code and not response.results:
            raise from_code(response.error_code, response.error_message or "")
        outcomes: dict[str, FeatureUpdate | ApiError] = dict(updates)
        for result in response.results:
            if result.error_code:
                outcomes[result.feature] = from_code(result.error_code, result.error_message or "")
        return Outcomes(outcomes)

    return await cluster.retrying(attempt, timeout_s=timeout_s)
