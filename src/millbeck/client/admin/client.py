"""`Admin`: one method per administrative API. Each loads the messages it needs when it is first called.

    async with Admin(real_environment(), {"bootstrap.servers": "127.0.0.1:9092"}) as admin:
        created = await admin.create_topics([NewTopic(name="orders", partition_count=3)])
        created["orders"].topic_id            # raises TopicAlreadyExists, InvalidTopic, ...

Methods that take several items return `Outcomes`; the others return a value or raise. ``timeout_s`` bounds a call with
its retries, ``default.api.timeout.ms`` when it is not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from millbeck.client.cluster import Cluster
from millbeck.client.config import ClientConfig, Value
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition, Uuid

if TYPE_CHECKING:
    from millbeck.client.admin.outcomes import Outcomes
    from millbeck.client.admin.results import (
        ClusterDescription,
        ConfigChange,
        ConfigEntry,
        ConfigResource,
        CreatedTopic,
        FeatureDescription,
        FeatureUpdate,
        GroupDescription,
        GroupListing,
        GroupOffset,
        ListedOffset,
        LogDirDescription,
        NewPartitions,
        NewTopic,
        ProducerDescription,
        QuorumDescription,
        Reassignment,
        ResourceType,
        TopicDescription,
        TopicListing,
    )
    from millbeck.client.admin.share_groups import ShareGroupDescription, ShareOffset


class AdminConfig(ClientConfig):
    """Settings of an admin client: those every client has."""


class Admin:
    """Make it inside a running loop; use it as an async context manager, or call `close`."""

    def __init__(self, environment: Environment, settings: Mapping[str, Value] | AdminConfig) -> None:
        config = settings if isinstance(settings, AdminConfig) else AdminConfig.parse(settings)
        self.cluster = Cluster(environment, config)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        await self.cluster.close()

    # topics

    async def create_topics(
        self, topics: Sequence[NewTopic], *, validate_only: bool = False, timeout_s: float | None = None
    ) -> Outcomes[str, CreatedTopic]:
        from millbeck.client.admin.topics import create_topics

        return await create_topics(self.cluster, topics, validate_only=validate_only, timeout_s=timeout_s)

    async def delete_topics(self, names: Iterable[str], *, timeout_s: float | None = None) -> Outcomes[str, Uuid]:
        from millbeck.client.admin.topics import delete_topics

        return await delete_topics(self.cluster, names, timeout_s=timeout_s)

    async def list_topics(self, *, timeout_s: float | None = None) -> dict[str, TopicListing]:
        """Every topic by name, internal ones included."""
        from millbeck.client.admin.topics import list_topics

        return await list_topics(self.cluster, timeout_s=timeout_s)

    async def describe_topics(
        self, names: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, TopicDescription]:
        from millbeck.client.admin.topics import describe_topics

        return await describe_topics(self.cluster, names, timeout_s=timeout_s)

    async def create_partitions(
        self, topics: Mapping[str, NewPartitions], *, validate_only: bool = False, timeout_s: float | None = None
    ) -> Outcomes[str, NewPartitions]:
        from millbeck.client.admin.topics import create_partitions

        return await create_partitions(self.cluster, topics, validate_only=validate_only, timeout_s=timeout_s)

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, int]:
        """Drop what lies before each offset, -1 for everything; where the logs start then."""
        from millbeck.client.admin.topics import delete_records

        return await delete_records(self.cluster, offsets, timeout_s=timeout_s)

    # settings

    async def describe_configs(
        self,
        resources: Mapping[ConfigResource, Sequence[str] | None] | Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[ConfigResource, dict[str, ConfigEntry]]:
        """All settings of these resources, or of each those named."""
        from millbeck.client.admin.configs import describe_configs

        return await describe_configs(
            self.cluster,
            resources if isinstance(resources, Mapping) else dict.fromkeys(resources),
            include_synonyms=include_synonyms,
            include_documentation=include_documentation,
            timeout_s=timeout_s,
        )

    async def alter_configs(
        self,
        resources: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[ConfigResource, ConfigResource]:
        """Replace all settings of each resource; what is not named returns to its default."""
        from millbeck.client.admin.configs import alter_configs

        return await alter_configs(self.cluster, resources, validate_only=validate_only, timeout_s=timeout_s)

    async def incremental_alter_configs(
        self,
        resources: Mapping[ConfigResource, Sequence[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[ConfigResource, ConfigResource]:
        from millbeck.client.admin.configs import incremental_alter_configs

        return await incremental_alter_configs(
            self.cluster, resources, validate_only=validate_only, timeout_s=timeout_s
        )

    async def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout_s: float | None = None
    ) -> list[ConfigResource]:
        from millbeck.client.admin.configs import list_config_resources

        return await list_config_resources(self.cluster, types, timeout_s=timeout_s)

    # the cluster

    async def describe_cluster(
        self,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
        timeout_s: float | None = None,
    ) -> ClusterDescription:
        from millbeck.client.admin.nodes import describe_cluster

        return await describe_cluster(
            self.cluster,
            include_authorized_operations=include_authorized_operations,
            include_fenced_brokers=include_fenced_brokers,
            timeout_s=timeout_s,
        )

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout_s: float | None = None
    ) -> Outcomes[int, tuple[LogDirDescription, ...]]:
        from millbeck.client.admin.nodes import describe_log_dirs

        return await describe_log_dirs(self.cluster, brokers, timeout_s=timeout_s)

    async def describe_quorum(self, *, timeout_s: float | None = None) -> QuorumDescription:
        from millbeck.client.admin.nodes import describe_quorum

        return await describe_quorum(self.cluster, timeout_s=timeout_s)

    async def add_raft_voter(
        self,
        node_id: int,
        directory_id: Uuid,
        endpoints: Iterable[tuple[str, str, int]],
        *,
        cluster_id: str | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Let a controller vote that follows the metadata log in that directory."""
        from millbeck.client.admin.nodes import add_raft_voter

        await add_raft_voter(self.cluster, node_id, directory_id, endpoints, cluster_id=cluster_id, timeout_s=timeout_s)

    async def remove_raft_voter(
        self, node_id: int, directory_id: Uuid, *, cluster_id: str | None = None, timeout_s: float | None = None
    ) -> None:
        from millbeck.client.admin.nodes import remove_raft_voter

        await remove_raft_voter(self.cluster, node_id, directory_id, cluster_id=cluster_id, timeout_s=timeout_s)

    async def describe_features(self, *, timeout_s: float | None = None) -> FeatureDescription:
        from millbeck.client.admin.nodes import describe_features

        return await describe_features(self.cluster, timeout_s=timeout_s)

    async def update_features(
        self, updates: Mapping[str, FeatureUpdate], *, validate_only: bool = False, timeout_s: float | None = None
    ) -> Outcomes[str, FeatureUpdate]:
        from millbeck.client.admin.nodes import update_features

        return await update_features(self.cluster, updates, validate_only=validate_only, timeout_s=timeout_s)

    # replicas

    async def elect_leaders(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        unclean: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[TopicPartition, None]:
        """Elect preferred leaders, or unclean ones where there is none; of all partitions when None are named."""
        from millbeck.client.admin.replicas import elect_leaders

        return await elect_leaders(self.cluster, partitions, unclean=unclean, timeout_s=timeout_s)

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, bool]:
        """Move partitions to other brokers; None takes a move back."""
        from millbeck.client.admin.replicas import alter_reassignments

        return await alter_reassignments(self.cluster, targets, timeout_s=timeout_s)

    async def alter_replica_log_dirs(
        self, places: Mapping[tuple[int, TopicPartition], str], *, timeout_s: float | None = None
    ) -> Outcomes[tuple[int, TopicPartition], bool]:
        """Have brokers keep replicas in these of their directories."""
        from millbeck.client.admin.replicas import alter_replica_log_dirs

        return await alter_replica_log_dirs(self.cluster, places, timeout_s=timeout_s)

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, *, timeout_s: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        from millbeck.client.admin.replicas import list_reassignments

        return await list_reassignments(self.cluster, partitions, timeout_s=timeout_s)

    async def unregister_broker(self, broker_id: int, *, timeout_s: float | None = None) -> None:
        from millbeck.client.admin.replicas import unregister_broker

        await unregister_broker(self.cluster, broker_id, timeout_s=timeout_s)

    # groups

    async def list_groups(
        self, *, states: Iterable[str] = (), types: Iterable[str] = (), timeout_s: float | None = None
    ) -> dict[str, GroupListing]:
        from millbeck.client.admin.groups import list_groups

        return await list_groups(self.cluster, states=states, types=types, timeout_s=timeout_s)

    async def describe_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[str, GroupDescription]:
        from millbeck.client.admin.groups import describe_groups

        return await describe_groups(
            self.cluster, groups, include_authorized_operations=include_authorized_operations, timeout_s=timeout_s
        )

    async def delete_groups(self, groups: Iterable[str], *, timeout_s: float | None = None) -> Outcomes[str, str]:
        from millbeck.client.admin.groups import delete_groups

        return await delete_groups(self.cluster, groups, timeout_s=timeout_s)

    async def list_group_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None] | Iterable[str],
        *,
        require_stable: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[str, dict[TopicPartition, GroupOffset]]:
        """What groups have committed, for all partitions or for those given; none is left out as not committed."""
        from millbeck.client.admin.groups import list_group_offsets

        return await list_group_offsets(
            self.cluster,
            groups if isinstance(groups, Mapping) else dict.fromkeys(groups),
            require_stable=require_stable,
            timeout_s=timeout_s,
        )

    async def alter_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, GroupOffset], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, GroupOffset]:
        from millbeck.client.admin.groups import alter_group_offsets

        return await alter_group_offsets(self.cluster, group, offsets, timeout_s=timeout_s)

    async def delete_group_offsets(
        self, group: str, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, TopicPartition]:
        from millbeck.client.admin.groups import delete_group_offsets

        return await delete_group_offsets(self.cluster, group, partitions, timeout_s=timeout_s)

    # partitions

    # share groups

    async def describe_share_groups(
        self, groups: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, ShareGroupDescription]:
        from millbeck.client.admin.share_groups import describe_share_groups

        return await describe_share_groups(self.cluster, groups, timeout_s=timeout_s)

    async def list_share_offsets(
        self, groups: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, dict[TopicPartition, ShareOffset]]:
        """Where share groups stand in the partitions that they have begun to read."""
        from millbeck.client.admin.share_groups import list_share_offsets

        return await list_share_offsets(self.cluster, groups, timeout_s=timeout_s)

    async def alter_share_offsets(
        self, group: str, starts: Mapping[TopicPartition, int], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, int]:
        from millbeck.client.admin.share_groups import alter_share_offsets

        return await alter_share_offsets(self.cluster, group, starts, timeout_s=timeout_s)

    async def delete_share_offsets(
        self, group: str, topics: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, str]:
        from millbeck.client.admin.share_groups import delete_share_offsets

        return await delete_share_offsets(self.cluster, group, topics, timeout_s=timeout_s)

    async def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[TopicPartition, ListedOffset]:
        """The first offset at or after each time, or `LATEST`, `EARLIEST`, `MAX_TIMESTAMP`, ..."""
        from millbeck.client.admin.partitions import list_offsets

        return await list_offsets(self.cluster, timestamps, isolation_level=int(read_committed), timeout_s=timeout_s)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, tuple[ProducerDescription, ...]]:
        from millbeck.client.admin.partitions import describe_producers

        return await describe_producers(self.cluster, partitions, timeout_s=timeout_s)
