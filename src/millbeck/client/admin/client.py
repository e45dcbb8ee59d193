"""`Admin`: one method per admin API. Each imports the messages it needs on its first call.

    async with Admin({"bootstrap.servers": "127.0.0.1:9092"}) as admin:
        created = await admin.create_topics([NewTopic(name="orders", partition_count=3)])
        created["orders"].topic_id            # raises TopicAlreadyExists, InvalidTopic, ...

Methods that take several items return `Outcomes`; the others return a value or raise. ``timeout_s`` bounds a call
including its retries; the default is ``default.api.timeout.ms``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from millbeck.client.cluster import Cluster
from millbeck.client.config import ClientConfig, Value
from millbeck.client.lifecycle import LoopBound, merged
from millbeck.client.metrics.registry import MetricName
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition, Uuid, uuid_text

if TYPE_CHECKING:
    from millbeck.client.admin.outcomes import Outcomes
    from millbeck.client.admin.quotas import QuotaEntity
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
    from millbeck.client.admin.streams_groups import StreamsGroupDescription
    from millbeck.client.admin.tokens import DelegationToken
    from millbeck.client.admin.transactions import FencedProducer, TransactionDescription, TransactionListing
    from millbeck.client.admin.users import Credentials, DeletedCredential, NewCredential
    from millbeck.security.acls import AccessControlEntry, AclFilter
    from millbeck.security.principal import Principal
    from millbeck.security.sasl.scram_messages import ScramMechanism


class AdminConfig(ClientConfig):
    """The settings of an admin client, which are those common to all clients."""


class Admin(LoopBound):
    """The admin client. It is started by its first call; use it as an async context manager, or call `close`."""

    def __init__(
        self,
        settings: Mapping[str, object] | AdminConfig | None = None,
        *,
        environment: Environment | None = None,
        **named: Value,
    ) -> None:
        """Settings under Kafka's names, or as keyword arguments: ``request_timeout_ms=5000``."""
        super().__init__(environment)
        self.config = settings if isinstance(settings, AdminConfig) else AdminConfig.parse(merged(settings, named))

    def _start(self) -> None:
        self._cluster = Cluster(self.environment, self.config, kind="admin-client")

    @property
    def cluster(self) -> Cluster:
        self._enter()
        return self._cluster

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self.is_started:
            await self.cluster.close()

    def metrics(self) -> dict[MetricName, float]:
        """The values of all metrics now, under the names of Kafka's Java clients."""
        return self.cluster.metrics.read()

    async def client_instance_id(self, *, timeout_s: float | None = None) -> str:
        """The id under which brokers collect this client's metrics (KIP-714); raises `UnsupportedByBroker` if they do
        not."""
        return uuid_text(
            await self.cluster.client_instance_id(
                self.config.default_api_timeout_ms / 1000 if timeout_s is None else timeout_s
            )
        )

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
        """Every topic by name, including internal ones."""
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
        """Delete the records before each offset (-1: all records); returns the new log start offsets."""
        from millbeck.client.admin.topics import delete_records

        return await delete_records(self.cluster, offsets, timeout_s=timeout_s)

    # ACLs

    async def describe_acls(
        self, wanted: AclFilter, *, timeout_s: float | None = None
    ) -> tuple[AccessControlEntry, ...]:
        """The ACLs that a filter matches; ``AclFilter()`` matches all."""
        from millbeck.client.admin.acls import describe_acls

        return await describe_acls(self.cluster, wanted, timeout_s=timeout_s)

    async def create_acls(
        self, entries: Iterable[AccessControlEntry], *, timeout_s: float | None = None
    ) -> Outcomes[AccessControlEntry, AccessControlEntry]:
        """Create ACLs; it is not an error if one exists already."""
        from millbeck.client.admin.acls import create_acls

        return await create_acls(self.cluster, entries, timeout_s=timeout_s)

    async def delete_acls(
        self, filters: Iterable[AclFilter], *, timeout_s: float | None = None
    ) -> Outcomes[AclFilter, tuple[AccessControlEntry, ...]]:
        """Delete the ACLs that match any filter; returns the ACLs deleted by each filter."""
        from millbeck.client.admin.acls import delete_acls

        return await delete_acls(self.cluster, filters, timeout_s=timeout_s)

    # quotas

    async def describe_client_quotas(
        self, *types: str, timeout_s: float | None = None
    ) -> dict[QuotaEntity, dict[str, float]]:
        """The quotas by entity: all, or those of entities with these types (user, client-id, ip)."""
        from millbeck.client.admin.quotas import describe_client_quotas

        return await describe_client_quotas(self.cluster, types, timeout_s=timeout_s)

    async def alter_client_quotas(
        self, changes: Mapping[QuotaEntity, Mapping[str, float | None]], *, timeout_s: float | None = None
    ) -> Outcomes[QuotaEntity, QuotaEntity]:
        """Set quotas by entity; None removes one."""
        from millbeck.client.admin.quotas import alter_client_quotas

        return await alter_client_quotas(self.cluster, changes, timeout_s=timeout_s)

    # users

    async def describe_users(
        self, names: Iterable[str] | None = None, *, timeout_s: float | None = None
    ) -> Outcomes[str, Credentials]:
        """The users with SCRAM credentials, all by default, each with its mechanisms and their iterations."""
        from millbeck.client.admin.users import describe_users

        return await describe_users(self.cluster, names, timeout_s=timeout_s)

    async def alter_users(
        self, changes: Mapping[str, NewCredential | DeletedCredential], *, timeout_s: float | None = None
    ) -> Outcomes[str, ScramMechanism]:
        """Set or delete a SCRAM credential of each user."""
        from millbeck.client.admin.users import alter_users

        return await alter_users(self.cluster, changes, timeout_s=timeout_s)

    # delegation tokens

    async def create_token(
        self,
        *,
        owner: Principal | None = None,
        renewers: Iterable[Principal] = (),
        lifetime_ms_max: int | None = None,
        timeout_s: float | None = None,
    ) -> DelegationToken:
        """Create a delegation token, by default for this client's own principal."""
        from millbeck.client.admin.tokens import create_token

        return await create_token(
            self.cluster, owner=owner, renewers=renewers, lifetime_ms_max=lifetime_ms_max, timeout_s=timeout_s
        )

    async def describe_tokens(
        self, owners: Iterable[Principal] | None = None, *, timeout_s: float | None = None
    ) -> tuple[DelegationToken, ...]:
        """The delegation tokens that this client may describe, of all or of some owners, with their HMACs."""
        from millbeck.client.admin.tokens import describe_tokens

        return await describe_tokens(self.cluster, owners, timeout_s=timeout_s)

    async def renew_token(self, hmac: bytes, *, period_ms: int | None = None, timeout_s: float | None = None) -> int:
        """Renew a delegation token for a period, by default the broker's default; returns the new expiration time."""
        from millbeck.client.admin.tokens import renew_token

        return await renew_token(self.cluster, hmac, period_ms=period_ms, timeout_s=timeout_s)

    async def expire_token(self, hmac: bytes, *, period_ms: int | None = None, timeout_s: float | None = None) -> int:
        """Set the expiration of a delegation token, by default to now, which removes it; returns the expiration time,
        or -1."""
        from millbeck.client.admin.tokens import expire_token

        return await expire_token(self.cluster, hmac, period_ms=period_ms, timeout_s=timeout_s)

    # settings

    async def describe_configs(
        self,
        resources: Mapping[ConfigResource, Sequence[str] | None] | Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_s: float | None = None,
    ) -> Outcomes[ConfigResource, dict[str, ConfigEntry]]:
        """The settings of each resource: all, or only the named ones."""
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
        """Replace all dynamic settings of each resource; a setting that is not given is reset to its default."""
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
        """Add a voter: the controller that runs as an observer with this directory."""
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

    async def describe_api_versions(
        self, *, timeout_s: float | None = None
    ) -> Outcomes[int, dict[int, tuple[int, int]]]:
        """The supported version range of each API key, by broker."""
        from millbeck.client.admin.nodes import describe_api_versions

        return await describe_api_versions(self.cluster, timeout_s=timeout_s)

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
        """Elect preferred leaders, or unclean ones for partitions without a leader; None means all partitions."""
        from millbeck.client.admin.replicas import elect_leaders

        return await elect_leaders(self.cluster, partitions, unclean=unclean, timeout_s=timeout_s)

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, Sequence[int] | None], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, bool]:
        """Reassign partitions to other brokers; None cancels a reassignment."""
        from millbeck.client.admin.replicas import alter_reassignments

        return await alter_reassignments(self.cluster, targets, timeout_s=timeout_s)

    async def alter_replica_log_dirs(
        self, places: Mapping[tuple[int, TopicPartition], str], *, timeout_s: float | None = None
    ) -> Outcomes[tuple[int, TopicPartition], bool]:
        """Move replicas to the given log directories of their brokers."""
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
        """The committed offsets of groups, for all or the given partitions; partitions without one are omitted."""
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

    async def remove_members(
        self,
        group: str,
        instance_ids: Iterable[str] | None = None,
        *,
        reason: str = "removed by an administrator",
        timeout_s: float | None = None,
    ) -> Outcomes[str, str]:
        """Remove static members from a classic group by their ``group.instance.id``, or all of its members.

        The results are member ids, by instance id, or by member id for members without one.
        """
        from millbeck.client.admin.groups import remove_members

        return await remove_members(self.cluster, group, instance_ids, reason=reason, timeout_s=timeout_s)

    # share groups

    async def describe_share_groups(
        self, groups: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, ShareGroupDescription]:
        from millbeck.client.admin.share_groups import describe_share_groups

        return await describe_share_groups(self.cluster, groups, timeout_s=timeout_s)

    async def describe_streams_groups(
        self, groups: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, StreamsGroupDescription]:
        from millbeck.client.admin.streams_groups import describe_streams_groups

        return await describe_streams_groups(self.cluster, groups, timeout_s=timeout_s)

    async def list_share_offsets(
        self, groups: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, dict[TopicPartition, ShareOffset]]:
        """The start offsets of share groups in the partitions that they have initialized."""
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
        """The first offset at or after each timestamp, or that of `LATEST`, `EARLIEST`, `MAX_TIMESTAMP`, ..."""
        from millbeck.client.admin.partitions import list_offsets

        return await list_offsets(self.cluster, timestamps, isolation_level=int(read_committed), timeout_s=timeout_s)

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_s: float | None = None
    ) -> Outcomes[TopicPartition, tuple[ProducerDescription, ...]]:
        from millbeck.client.admin.partitions import describe_producers

        return await describe_producers(self.cluster, partitions, timeout_s=timeout_s)

    # transactions

    async def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        duration_ms: int = -1,
        pattern: str | None = None,
        timeout_s: float | None = None,
    ) -> list[TransactionListing]:
        """The transactional ids of all brokers: of these states, open for so long, whose name matches the pattern."""
        from millbeck.client.admin.transactions import list_transactions

        return await list_transactions(
            self.cluster,
            states=states,
            producer_ids=producer_ids,
            duration_ms=duration_ms,
            pattern=pattern,
            timeout_s=timeout_s,
        )

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, TransactionDescription]:
        from millbeck.client.admin.transactions import describe_transactions

        return await describe_transactions(self.cluster, transactional_ids, timeout_s=timeout_s)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_s: float | None = None
    ) -> Outcomes[str, FencedProducer]:
        """Fence the producers of these transactional ids and abort their open transactions."""
        from millbeck.client.admin.transactions import fence_producers

        return await fence_producers(self.cluster, transactional_ids, timeout_s=timeout_s)

    async def force_terminate_transaction(self, transactional_id: str, *, timeout_s: float | None = None) -> None:
        """Abort the open transaction of a transactional id, even a prepared one, and fence its producer."""
        from millbeck.client.admin.transactions import force_terminate_transaction

        await force_terminate_transaction(self.cluster, transactional_id, timeout_s=timeout_s)

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int = 0,
        timeout_s: float | None = None,
    ) -> None:
        """Write an abort marker to one partition, for a transaction that its coordinator no longer knows."""
        from millbeck.client.admin.transactions import abort_transaction

        await abort_transaction(
            self.cluster,
            partition,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timeout_s=timeout_s,
        )
