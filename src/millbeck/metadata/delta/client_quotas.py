"""Delta of the client quotas."""

from __future__ import annotations

from millbeck.metadata.delta.map_changes import MapDelta
from millbeck.metadata.image.client_quotas import ClientQuotasImage, QuotaEntity, quota_entity
from millbeck.metadata.records import ClientQuotaRecord


class ClientQuotasDelta:
    """``changed[entity].changed`` has the new value of each changed quota, None if it was removed."""

    __slots__ = ("changed", "image")

    def __init__(self, image: ClientQuotasImage) -> None:
        self.image = image
        self.changed: dict[QuotaEntity, MapDelta[str, float]] = {}

    def set_quota(self, record: ClientQuotaRecord) -> None:
        entity = quota_entity(record.entity)
        changes = self.changed.get(entity)
        if changes is None:
            changes = self.changed[entity] = MapDelta(self.image.by_entity.get(entity, {}))
        if record.remove:
            changes.remove(record.key)
        else:
            changes.put(record.key, record.value)

    def apply(self) -> ClientQuotasImage:
        if not self.changed:
            return self.image
        by_entity = dict(self.image.by_entity)
        for entity, changes in self.changed.items():
            quotas = changes.apply()
            if quotas:
                by_entity[entity] = quotas
            else:
                by_entity.pop(entity, None)
        return ClientQuotasImage(by_entity=by_entity)
