"""The controller: every change of the cluster is decided here.

A decision is a function of the latest appended image and a request; it returns records and the reply they earn, and
changes nothing but the memory of heartbeats. The driver appends the records, makes the next image of them, and sends
the reply once they are committed; decisions that came after it already saw that image. Each concern has a module of its
own; this class only holds what they share and is what the server talks to. Who may ask is the handlers' business.

The active controller also has duties that nobody asks for. Between `activate` and `deactivate` the driver submits
`duty` when `next_duty_ms` has come, again at once while it answers True, and then asks for the next time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from millbeck.controller import (
    alter_partition,
    config_listing,
    elections,
    features,
    nodes,
    partitions,
    producer_ids,
    reassignments,
    replica_directories,
)
from millbeck.controller.broker_lifecycle import BrokerLifecycle
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.configs import ConfigControl
from millbeck.controller.duties import Duties
from millbeck.controller.features import QuorumFeatures
from millbeck.controller.nodes import Registration
from millbeck.controller.options import ControllerOptions
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.controller.result import Result
from millbeck.controller.topics import TopicControl
from millbeck.kernel.environment import Randomness
from millbeck.metadata.features import SUPPORTED_FEATURES, FeatureRange
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from millbeck.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse
from millbeck.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from millbeck.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from millbeck.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from millbeck.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from millbeck.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from millbeck.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from millbeck.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse
from millbeck.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from millbeck.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from millbeck.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from millbeck.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def _always(_: str) -> bool:
    return True


class Controller:
    """All decisions. Methods raise `ApiError` where the reply has no place for one outcome of many."""

    def __init__(self, *, options: ControllerOptions, rules: ConfigRules, randomness: Randomness) -> None:
        self._rules = rules
        self._randomness = randomness
        self._brokers = BrokerLifecycle(options, rules)
        self._duties = Duties(options, rules, self._brokers)
        self._topics = TopicControl(options, rules)
        self._configs = ConfigControl(rules)

    def create_topics(
        self,
        image: MetadataImage,
        request: CreateTopicsRequest,
        *,
        may_describe_configs: Callable[[str], bool] = _always,
    ) -> Result[CreateTopicsResponse]:
        return self._topics.create(
            image, request, randomness=self._randomness, may_describe_configs=may_describe_configs
        )

    def delete_topics(self, image: MetadataImage, request: DeleteTopicsRequest) -> Result[DeleteTopicsResponse]:
        return self._topics.delete(image, request)

    def create_partitions(
        self, image: MetadataImage, request: CreatePartitionsRequest
    ) -> Result[CreatePartitionsResponse]:
        return partitions.create_partitions(image, request, randomness=self._randomness)

    def alter_configs(self, image: MetadataImage, request: AlterConfigsRequest) -> Result[AlterConfigsResponse]:
        return self._configs.alter(image, request)

    def incremental_alter_configs(
        self, image: MetadataImage, request: IncrementalAlterConfigsRequest
    ) -> Result[IncrementalAlterConfigsResponse]:
        return self._configs.alter_incrementally(image, request)

    def list_config_resources(
        self, image: MetadataImage, request: ListConfigResourcesRequest, *, version: int
    ) -> ListConfigResourcesResponse:
        return config_listing.list_config_resources(image, request, version=version)

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
        registration: Registration,
        *,
        now_ms: int | None = None,
        has_live_session: bool = False,
    ) -> Result[int]:
        """The broker's epoch; it begins fenced.

        With ``now_ms`` a process of that id that is heard from keeps it (`DuplicateBrokerRegistration`); without, it is
        known to be gone: a node that is its own controller holds the lock on its directories.
        """
        result = self._brokers.register(image, registration, now_ms=now_ms, has_live_session=has_live_session)
        return Result(response=result.response.epoch, records=result.records)

    def broker_heartbeat(
        self, image: MetadataImage, request: BrokerHeartbeatRequest, *, now_ms: int
    ) -> Result[BrokerHeartbeatResponse]:
        return self._brokers.heartbeat(image, request, now_ms)

    def unfence_broker(self, image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
        return self._brokers.unfence(image, broker_id, epoch)

    def fence_broker(self, image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
        return self._brokers.fence(image, broker_id, epoch)

    def unregister_broker(self, image: MetadataImage, broker_id: int) -> Result[None]:
        return self._brokers.unregister(image, broker_id)

    def register_controller(self, image: MetadataImage, registration: Registration) -> Result[None]:
        return nodes.register_controller(image, registration)

    def allocate_producer_ids(self, image: MetadataImage, broker_id: int, broker_epoch: int) -> Result[ProducerIdBlock]:
        return producer_ids.allocate_producer_ids(image, broker_id, broker_epoch)

    # Replicas and leaders.

    def alter_partition(self, image: MetadataImage, request: AlterPartitionRequest) -> Result[AlterPartitionResponse]:
        return alter_partition.alter_partition(image, self._rules, request)

    def alter_partition_reassignments(
        self, image: MetadataImage, request: AlterPartitionReassignmentsRequest
    ) -> Result[AlterPartitionReassignmentsResponse]:
        return reassignments.alter_partition_reassignments(image, self._rules, request)

    def list_partition_reassignments(
        self, image: MetadataImage, request: ListPartitionReassignmentsRequest
    ) -> ListPartitionReassignmentsResponse:
        return reassignments.list_partition_reassignments(image, request)

    def elect_leaders(self, image: MetadataImage, request: ElectLeadersRequest) -> Result[ElectLeadersResponse]:
        return elections.elect_leaders(image, self._rules, request)

    def assign_replicas_to_directories(
        self, image: MetadataImage, request: AssignReplicasToDirsRequest
    ) -> Result[AssignReplicasToDirsResponse]:
        return replica_directories.assign_replicas_to_directories(image, self._rules, request)

    # Being the active controller. Times are of the monotonic clock.

    def activate(self, image: MetadataImage, *, now_ms: int) -> None:
        """This node leads the quorum, and ``image`` is everything committed: every broker gets a fresh session."""
        self._brokers.activate(image, now_ms)
        self._duties.activate(now_ms)

    def deactivate(self) -> None:
        """This node leads no more. What it remembered of heartbeats is worth nothing."""
        self._brokers.deactivate()

    @property
    def is_active(self) -> bool:
        return self._brokers.tracker is not None

    def next_duty_ms(self, image: MetadataImage, *, now_ms: int) -> int:
        """When to submit `duty` next: now, or later; `NotController` when this node is not active."""
        return self._duties.next_ms(image, now_ms)

    def duty(self, image: MetadataImage, *, now_ms: int) -> Result[bool]:
        """One thing the controller does by itself, if any is due; True when it should be submitted again at once."""
        return self._duties.step(image, now_ms)
