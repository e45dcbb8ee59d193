"""Dynamic configurations by resource."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from millbeck.metadata.records import ConfigRecord


class ResourceType(IntEnum):
    """Types of configuration resources, with the numbers of the protocol."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A topic, broker, group or client metrics subscription; the broker "" is the default of all brokers."""

    type: int
    name: str


CLUSTER_DEFAULT = ConfigResource(ResourceType.BROKER, "")

_NOTHING: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigsImage:
    """A resource without configs is not in ``by_resource``."""

    by_resource: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict)

    def of(self, resource: ConfigResource) -> Mapping[str, str]:
        return self.by_resource.get(resource, _NOTHING)

    def of_topic(self, name: str) -> Mapping[str, str]:
        return self.by_resource.get(ConfigResource(ResourceType.TOPIC, name), _NOTHING)

    def of_broker(self, broker_id: int) -> Mapping[str, str]:
        return self.by_resource.get(ConfigResource(ResourceType.BROKER, str(broker_id)), _NOTHING)

    def of_all_brokers(self) -> Mapping[str, str]:
        return self.by_resource.get(CLUSTER_DEFAULT, _NOTHING)

    def of_group(self, group_id: str) -> Mapping[str, str]:
        return self.by_resource.get(ConfigResource(ResourceType.GROUP, group_id), _NOTHING)

    def names(self, resource_type: int) -> list[str]:
        """Names of the resources of one type that have configs."""
        return sorted(resource.name for resource in self.by_resource if resource.type == resource_type)

    def records(self) -> Iterator[ConfigRecord]:
        for resource in sorted(self.by_resource):
            options = self.by_resource[resource]
            for name in sorted(options):
                yield ConfigRecord(
                    resource_type=resource.type, resource_name=resource.name, name=name, value=options[name]
                )
