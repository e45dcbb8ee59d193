"""ListConfigResources: the resources whose options can be described."""

from __future__ import annotations

from millbeck.kernel.errors import UnsupportedVersion
from millbeck.metadata.image import MetadataImage, ResourceType
from millbeck.wire.messages.configs import ConfigResource, ListConfigResourcesRequest, ListConfigResourcesResponse

_LISTABLE = (
    ResourceType.TOPIC,
    ResourceType.BROKER,
    ResourceType.BROKER_LOGGER,
    ResourceType.CLIENT_METRICS,
    ResourceType.GROUP,
)


def list_config_resources(
    image: MetadataImage, request: ListConfigResourcesRequest, *, version: int
) -> ListConfigResourcesResponse:
    """All topics and brokers, and the groups and client metrics subscriptions that have overrides."""
    asked = request.resource_types or list(_LISTABLE)
    if version == 0:
        asked = [ResourceType.CLIENT_METRICS]
    unknown = sorted({number for number in asked if number not in _LISTABLE})
    if unknown:
        error = UnsupportedVersion(f"Config resources of type {unknown[0]} cannot be listed.")
        return ListConfigResourcesResponse(error_code=error.code)
    found = [
        ConfigResource(resource_name=name, resource_type=resource_type)
        for resource_type in _LISTABLE
        if resource_type in asked
        for name in _names(image, resource_type)
    ]
    return ListConfigResourcesResponse(config_resources=found)


def _names(image: MetadataImage, resource_type: ResourceType) -> list[str]:
    if resource_type is ResourceType.TOPIC:
        return sorted(image.topics.by_name)
    if resource_type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER):
        return [str(broker.broker_id) for broker in image.cluster.unfenced_brokers()]
    return image.configs.names(resource_type)
