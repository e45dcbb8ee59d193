"""Delta of the registered brokers and controllers."""

from __future__ import annotations

from dataclasses import replace

from millbeck.metadata.delta.map_changes import MapDelta
from millbeck.metadata.fault import MetadataFault
from millbeck.metadata.image.cluster import BrokerRegistration, ClusterImage, ControllerRegistration
from millbeck.metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)


class ClusterDelta:
    """``brokers.changed`` and ``controllers.changed`` have the nodes that are new, changed or (None) unregistered."""

    __slots__ = ("brokers", "controllers", "image")

    def __init__(self, image: ClusterImage) -> None:
        self.image = image
        self.brokers: MapDelta[int, BrokerRegistration] = MapDelta(image.brokers)
        self.controllers: MapDelta[int, ControllerRegistration] = MapDelta(image.controllers)

    def register_broker(self, record: RegisterBrokerRecord) -> None:
        self.brokers.put(record.broker_id, BrokerRegistration.from_record(record))

    def unregister_broker(self, record: UnregisterBrokerRecord) -> None:
        self._registered(record.broker_id, record.broker_epoch)
        self.brokers.remove(record.broker_id)

    def fence(self, record: FenceBrokerRecord) -> None:
        broker = self._registered(record.id, record.epoch)
        self.brokers.put(record.id, replace(broker, is_fenced=True))

    def unfence(self, record: UnfenceBrokerRecord) -> None:
        broker = self._registered(record.id, record.epoch)
        self.brokers.put(record.id, replace(broker, is_fenced=False))

    def change_broker(self, record: BrokerRegistrationChangeRecord) -> None:
        if record.fenced not in (-1, 0, 1) or record.in_controlled_shutdown not in (0, 1):
            raise MetadataFault(f"invalid values in broker registration change: {record!r}")
        broker = self._registered(record.broker_id, record.broker_epoch)
        changed = replace(
            broker,
            is_fenced=broker.is_fenced if record.fenced == 0 else record.fenced == 1,
            in_controlled_shutdown=broker.in_controlled_shutdown or record.in_controlled_shutdown == 1,
            directories=tuple(record.log_dirs) or broker.directories,
            cordoned_directories=(
                broker.cordoned_directories if record.cordoned_log_dirs is None else tuple(record.cordoned_log_dirs)
            ),
        )
        if changed != broker:
            self.brokers.put(record.broker_id, changed)

    def register_controller(self, record: RegisterControllerRecord) -> None:
        self.controllers.put(record.controller_id, ControllerRegistration.from_record(record))

    def apply(self) -> ClusterImage:
        if not self.brokers.changed and not self.controllers.changed:
            return self.image
        return ClusterImage(brokers=self.brokers.apply(), controllers=self.controllers.apply())

    def _registered(self, broker_id: int, epoch: int) -> BrokerRegistration:
        broker = self.brokers.get(broker_id)
        if broker is None:
            raise MetadataFault(f"change of broker {broker_id}, which is not registered")
        if broker.epoch != epoch:
            raise MetadataFault(f"change of broker {broker_id} with epoch {epoch}; its epoch is {broker.epoch}")
        return broker
