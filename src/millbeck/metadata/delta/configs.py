"""Delta of the dynamic configurations."""

from __future__ import annotations

from millbeck.metadata.delta.map_changes import MapDelta
from millbeck.metadata.image.configs import ConfigResource, ConfigsImage, ResourceType
from millbeck.metadata.records import ConfigRecord


class ConfigsDelta:
    """``changed[resource].changed`` has the new value of each changed config, None if it was deleted.

    A config set to its current value counts as changed: setting a broker's config again makes the broker reload it.
    """

    __slots__ = ("changed", "image")

    def __init__(self, image: ConfigsImage) -> None:
        self.image = image
        self.changed: dict[ConfigResource, MapDelta[str, str]] = {}

    def set_option(self, record: ConfigRecord) -> None:
        resource = ConfigResource(record.resource_type, record.resource_name)
        changes = self._changes_of(resource)
        if record.value is None:
            changes.remove(record.name)
        else:
            changes.put(record.name, record.value)

    def remove_topic(self, name: str) -> None:
        """Remove the configs of a deleted topic."""
        resource = ConfigResource(ResourceType.TOPIC, name)
        if resource not in self.image.by_resource and resource not in self.changed:
            return
        changes = self._changes_of(resource)
        for option in [*changes.base, *changes.changed]:
            changes.remove(option)

    def apply(self) -> ConfigsImage:
        if not self.changed:
            return self.image
        by_resource = dict(self.image.by_resource)
        for resource, changes in self.changed.items():
            options = changes.apply()
            if options:
                by_resource[resource] = options
            else:
                by_resource.pop(resource, None)
        return ConfigsImage(by_resource=by_resource)

    def _changes_of(self, resource: ConfigResource) -> MapDelta[str, str]:
        changes = self.changed.get(resource)
        if changes is None:
            changes = self.changed[resource] = MapDelta(self.image.of(resource))
        return changes
