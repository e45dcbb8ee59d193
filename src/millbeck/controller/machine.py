"""The controller: every change of the cluster is decided here.

A decision is a function of the latest appended image and a request; it returns records and the reply they earn, and
changes nothing. The driver appends the records, makes the next image of them, and sends the reply once they are
committed; decisions that came after it already saw that image. Each concern has a module of its own; this class only
holds what they share and is what the server talks to. Who may ask is the handlers' business.
"""

from __future__ import annotations

from collections.abc import Callable

from millbeck.controller import config_listing, features, nodes, partitions, producer_ids
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.configs import ConfigControl
from millbeck.controller.nodes import Registration
from millbeck.controller.options import ControllerOptions
from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.controller.result import Result
from millbeck.controller.topics import TopicControl
from millbeck.kernel.environment import Randomness
from millbeck.metadata.image import MetadataImage
from millbeck.wire.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from millbeck.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from millbeck.wire.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from millbeck.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from millbeck.wire.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from millbeck.wire.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from millbeck.wire.messages.update_features import UpdateFeaturesRequest, UpdateFeaturesResponse


def _always(_: str) -> bool:
    return True


class Controller:
    """All decisions. Methods raise `ApiError` where the reply has no place for one outcome of many."""

    def __init__(self, *, options: ControllerOptions, rules: ConfigRules, randomness: Randomness) -> None:
        self._randomness = randomness
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
        self, image: MetadataImage, request: UpdateFeaturesRequest, *, version: int
    ) -> Result[UpdateFeaturesResponse]:
        return features.update_features(image, request, version=version)

    def register_broker(
        self, image: MetadataImage, registration: Registration, *, has_live_session: bool = False
    ) -> Result[int]:
        return nodes.register_broker(image, registration, has_live_session=has_live_session)

    def unfence_broker(self, image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
        return nodes.unfence_broker(image, broker_id, epoch)

    def fence_broker(self, image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
        return nodes.fence_broker(image, broker_id, epoch)

    def unregister_broker(self, image: MetadataImage, broker_id: int) -> Result[None]:
        return nodes.unregister_broker(image, broker_id)

    def register_controller(self, image: MetadataImage, registration: Registration) -> Result[None]:
        return nodes.register_controller(image, registration)

    def allocate_producer_ids(self, image: MetadataImage, broker_id: int, broker_epoch: int) -> Result[ProducerIdBlock]:
        return producer_ids.allocate_producer_ids(image, broker_id, broker_epoch)
