"""The controller: decides all changes of the cluster metadata.

A decision is a function of the latest appended image and a request. It returns records and the response, and changes
only the in-memory state of heartbeats; one that raises an `ApiError` changes nothing. The first record gets the offset
``image.offset + 1``. The driver appends the records, builds the next image from them, and sends the response when they
are committed; later decisions are based on that image. Each area has a separate module; this class holds their common
state and is the interface for the server. Authorization is done by the request handlers.

The active controller also performs periodic tasks. While the controller is active, the driver waits until
`next_task_ms`, calls `task_begun` and submits `periodic_task`, again at once while that returns True.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millbeck.controller import (
    acls,
    alter_partition,
    client_quotas,
    config_listing,
    elections,
    features,
    nodes,
    partitions,
    producer_ids,
    reassignments,
    replica_directories,
    scram,
)
from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.configs import ConfigurationControl
from millbeck.controller.delegation_tokens import DelegationTokenControl
from millbeck.controller.features import QuorumFeatures
from millbeck.controller.nodes import NodeRegistration
from millbeck.controller.options import ControllerOptions
from millbeck.controller.periodic_tasks import PeriodicTasks
from millbeck.controller.policies import NO_POLICIES, Policies
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.controller.result import Result, Steps
from millbeck.controller.topics import TopicControl
from millbeck.kernel.environment import Randomness
from millbeck.metadata.features import SUPPORTED_FEATURES, FeatureRange
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.acls import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from millbeck.wire.messages.authentication import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from millbeck.wire.messages.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from millbeck.wire.messages.nodes import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from millbeck.wire.messages.quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from millbeck.wire.messages.replicas import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from millbeck.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)


def _always(_: str) -> bool:
    return True


class Controller:
    """All decisions. Methods raise `ApiError` where the response has no field for the error.

    Decisions that may affect thousands of partitions are `Steps`.
    """

    def __init__(
        self,
        *,
        options: ControllerOptions,
        rules: ConfigRules,
        randomness: Randomness,
        policies: Policies = NO_POLICIES,
    ) -> None:
        self._rules = rules
        self._randomness = randomness
        self._brokers = BrokerLifecycle(options, rules)
        self._periodic_tasks = PeriodicTasks(options, rules, self._brokers)
        self._topics = TopicControl(options, rules, policies)
        self._configs = ConfigurationControl(rules, policies)
        self.tokens = DelegationTokenControl(options.tokens)

    def create_topics(
        self,
        image: MetadataImage,
        request: CreateTopicsRequest,
        *,
        may_describe_configs: Callable[[str], bool] = _always,
    ) -> Steps[Result[CreateTopicsResponse]]:
        return self._topics.create(
            image, request, randomness=self._randomness, may_describe_configs=may_describe_configs
        )

    def delete_topics(self, image: MetadataImage, request: DeleteTopicsRequest) -> Steps[Result[DeleteTopicsResponse]]:
        return self._topics.delete(image, request)

    def create_partitions(
        self, image: MetadataImage, request: CreatePartitionsRequest
    ) -> Steps[Result[CreatePartitionsResponse]]:
        return partitions.create_partitions(image, request, randomness=self._randomness)

    def alter_configs(self, image: MetadataImage, request: AlterConfigsRequest) -> Steps[Result[AlterConfigsResponse]]:
        return self._configs.alter(image, request)

    def incremental_alter_configs(
        self, image: MetadataImage, request: IncrementalAlterConfigsRequest
    ) -> Steps[Result[IncrementalAlterConfigsResponse]]:
        return self._configs.alter_incrementally(image, request)

    def list_config_resources(
        self, image: MetadataImage, request: ListConfigResourcesRequest, *, version: int
    ) -> ListConfigResourcesResponse:
        return config_listing.list_config_resources(image, request, version=version)

    def create_acls(self, image: MetadataImage, request: CreateAclsRequest) -> Steps[Result[CreateAclsResponse]]:
        return acls.create_acls(image, request, randomness=self._randomness)

    def delete_acls(self, image: MetadataImage, request: DeleteAclsRequest) -> Steps[Result[DeleteAclsResponse]]:
        return acls.delete_acls(image, request)

    def alter_client_quotas(
        self, image: MetadataImage, request: AlterClientQuotasRequest
    ) -> Result[AlterClientQuotasResponse]:
        return client_quotas.alter_client_quotas(image, request)

    def alter_user_scram_credentials(
        self, image: MetadataImage, request: AlterUserScramCredentialsRequest
    ) -> Steps[Result[AlterUserScramCredentialsResponse]]:
        return scram.alter_user_scram_credentials(image, request)

    def update_features(
        self,
        image: MetadataImage,
        request: UpdateFeaturesRequest,
        *,
        version: int,
        quorum: QuorumFeatures = QuorumFeatures(),
        supported: Mapping[str, FeatureRange] = SUPPORTED_FEATURES,
    ) -> Result[UpdateFeaturesResponse]:
        return features.update_features(
            image, request, self._rules, version=version, quorum=quorum, supported=supported
        )

    # Nodes.

    def register_broker(
        self,
        image: MetadataImage,
        registration: NodeRegistration,
        *,
        now_ms: int | None = None,
        has_live_session: bool = False,
    ) -> Steps[Result[int]]:
        """Register a broker; returns its epoch. The broker starts fenced.

        With ``now_ms``, `DuplicateBrokerRegistration` is raised while another process with this id has an active
        session. Without it, that process is known to have ended: a node that is its own controller holds the lock of
        its directories.
        """
        result = yield from self._brokers.register(
            image, registration, now_ms=now_ms, has_live_session=has_live_session
        )
        return Result(response=result.response.epoch, records=result.records)

    def broker_heartbeat_arrived(self, request: BrokerHeartbeatRequest, *, now_ms: int) -> None:
        """Renew the session at once; the heartbeat itself is processed later, in order."""
        self._brokers.heartbeat_arrived(request, now_ms)

    def reply_to_unchanged_heartbeat(
        self, committed: MetadataImage, image: MetadataImage, request: BrokerHeartbeatRequest, *, now_ms: int
    ) -> BrokerHeartbeatResponse | None:
        """The response if the heartbeat changes nothing; None if `broker_heartbeat` must be submitted."""
        return self._brokers.reply_to_unchanged(committed, image, request, now_ms)

    def broker_heartbeat(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, *, now_ms: int
    ) -> Steps[Result[BrokerHeartbeatResponse]]:
        return self._brokers.heartbeat(image, request, now_ms)

    def unfence_broker(self, image: MetadataImage, broker_id: int, epoch: int) -> Steps[Result[None]]:
        return self._brokers.unfence(image, broker_id, epoch)

    def fence_broker(self, image: MetadataImage, broker_id: int, epoch: int) -> Steps[Result[None]]:
        return self._brokers.fence(image, broker_id, epoch)

    def unregister_broker(self, image: MetadataImage, broker_id: int) -> Steps[Result[None]]:
        return self._brokers.unregister(image, broker_id)

    def register_controller(self, image: MetadataImage, registration: NodeRegistration) -> Result[None]:
        return nodes.register_controller(image, registration)

    def allocate_producer_ids(self, image: MetadataImage, broker_id: int, broker_epoch: int) -> Result[ProducerIdBlock]:
        return producer_ids.allocate_producer_ids(image, broker_id, broker_epoch)

    # Replicas and leaders.

    def alter_partition(
        self, image: MetadataImage, request: AlterPartitionRequest
    ) -> Steps[Result[AlterPartitionResponse]]:
        return alter_partition.alter_partition(image, self._rules, request)

    def alter_partition_reassignments(
        self, image: MetadataImage, request: AlterPartitionReassignmentsRequest
    ) -> Steps[Result[AlterPartitionReassignmentsResponse]]:
        return reassignments.alter_partition_reassignments(image, self._rules, request)

    def list_partition_reassignments(
        self, image: MetadataImage, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return reassignments.list_partition_reassignments(image, request)

    def elect_leaders(self, image: MetadataImage, request: ElectLeadersRequest) -> Steps[Result[ElectLeadersResponse]]:
        return elections.elect_leaders(image, self._rules, request)

    def assign_replicas_to_directories(
        self, image: MetadataImage, request: AssignReplicasToDirsRequest
    ) -> Steps[Result[AssignReplicasToDirsResponse]]:
        return replica_directories.assign_replicas_to_directories(image, self._rules, request)

    # The active controller. Times are those of the monotonic clock.

    def activate(self, image: MetadataImage, *, now_ms: int) -> None:
        """Become active with the committed ``image``; every broker gets a new session."""
        self._brokers.activate(image, now_ms)
        self._periodic_tasks.activate(now_ms)

    def deactivate(self) -> None:
        """Stop being active, and drop the sessions."""
        self._brokers.deactivate()

    @property
    def is_active(self) -> bool:
        return self._brokers.tracker is not None

    def next_task_ms(self, image: MetadataImage, *, now_ms: int) -> int:
        """The time at which to submit `periodic_task` next; raises `NotController` when this node is not active."""
        return self._periodic_tasks.next_ms(image, now_ms)

    def task_begun(self, *, now_ms: int) -> None:
        """Called when the next periodic task is submitted; it is decided later, in order."""
        self._periodic_tasks.begun(now_ms)

    def periodic_task(self, image: MetadataImage, *, now_ms: int) -> Steps[Result[bool]]:
        """Perform one periodic task if one is due; True if another should follow at once."""
        return self._periodic_tasks.step(image, now_ms)

    def task_failed(self, error: Exception, *, now_ms: int) -> None:
        """Called when the records of the last `periodic_task` could not be written completely."""
        self._periodic_tasks.not_written(error, now_ms)

    @property
    def failure_count(self) -> int:
        """The number of failures that were limited to one partition, broker or task."""
        return self._rules.isolation.failure_count
