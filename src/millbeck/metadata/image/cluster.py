"""Registered brokers and controllers: endpoints, supported features and fencing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millbeck.kernel.ids import Uuid
from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image.directories import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from millbeck.metadata.records import RecordedEndpoint, RecordedFeature, RegisterBrokerRecord, RegisterControllerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The endpoint of one listener; ``security_protocol`` is Kafka's number."""

    listener: str
    host: str
    port: int
    security_protocol: int = 0

    @classmethod
    def from_data(cls, data: RecordedEndpoint) -> Endpoint:
        return cls(listener=data.name, host=data.host, port=data.port, security_protocol=data.security_protocol)

    def to_data(self) -> RecordedEndpoint:
        return RecordedEndpoint(
            name=self.listener, host=self.host, port=self.port, security_protocol=self.security_protocol
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """The registration of one broker. ``epoch`` is the offset of its registration record."""

    broker_id: int
    epoch: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, FeatureRange] = field(default_factory=dict)
    rack: str | None = None
    is_fenced: bool = True
    in_controlled_shutdown: bool = False
    directories: tuple[Uuid, ...] = ()
    cordoned_directories: tuple[Uuid, ...] | None = None

    @property
    def is_active(self) -> bool:
        """Whether the broker may be leader and in the ISR."""
        return not self.is_fenced and not self.in_controlled_shutdown

    @property
    def takes_new_replicas(self) -> bool:
        """Whether new replicas may be placed here: not shutting down, and not all directories are cordoned
        (KIP-1066)."""
        if self.in_controlled_shutdown:
            return False
        cordoned = self.cordoned_directories
        return not cordoned or not self.directories or any(each not in cordoned for each in self.directories)

    def has_online(self, directory: Uuid) -> bool:
        """Whether a log in that directory is online; an unknown directory counts as online."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        # Registered before directories were tracked: none is known to be offline.
        return not self.directories or directory in self.directories

    @property
    def default_directory(self) -> Uuid:
        """Directory of a new replica: the only one, or unassigned until the broker with several directories chooses
        one."""
        if not self.directories:
            return MIGRATING_DIRECTORY
        return self.directories[0] if len(self.directories) == 1 else UNASSIGNED_DIRECTORY

    def endpoint(self, listener: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None

    @classmethod
    def from_record(cls, record: RegisterBrokerRecord) -> BrokerRegistration:
        cordoned = record.cordoned_log_dirs
        return cls(
            broker_id=record.broker_id,
            epoch=record.broker_epoch,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(Endpoint.from_data(data) for data in record.end_points),
            features=_ranges(record.features),
            rack=record.rack,
            is_fenced=record.fenced,
            in_controlled_shutdown=record.in_controlled_shutdown,
            directories=tuple(record.log_dirs),
            cordoned_directories=None if cordoned is None else tuple(cordoned),
        )

    def to_record(self) -> RegisterBrokerRecord:
        cordoned = self.cordoned_directories
        return RegisterBrokerRecord(
            broker_id=self.broker_id,
            incarnation_id=self.incarnation_id,
            broker_epoch=self.epoch,
            end_points=[endpoint.to_data() for endpoint in self.endpoints],
            features=_feature_data(self.features),
            rack=self.rack,
            fenced=self.is_fenced,
            in_controlled_shutdown=self.in_controlled_shutdown,
            log_dirs=list(self.directories),
            cordoned_log_dirs=None if cordoned is None else list(cordoned),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRegistration:
    """The registration of one controller."""

    controller_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...] = ()
    features: Mapping[str, FeatureRange] = field(default_factory=dict)
    zk_migration_ready: bool = False

    @classmethod
    def from_record(cls, record: RegisterControllerRecord) -> ControllerRegistration:
        return cls(
            controller_id=record.controller_id,
            incarnation_id=record.incarnation_id,
            endpoints=tuple(Endpoint.from_data(data) for data in record.end_points),
            features=_ranges(record.features),
            zk_migration_ready=record.zk_migration_ready,
        )

    def to_record(self) -> RegisterControllerRecord:
        return RegisterControllerRecord(
            controller_id=self.controller_id,
            incarnation_id=self.incarnation_id,
            zk_migration_ready=self.zk_migration_ready,
            end_points=[endpoint.to_data() for endpoint in self.endpoints],
            features=_feature_data(self.features),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterImage:
    brokers: Mapping[int, BrokerRegistration] = field(default_factory=dict)
    controllers: Mapping[int, ControllerRegistration] = field(default_factory=dict)

    def broker(self, broker_id: int) -> BrokerRegistration | None:
        return self.brokers.get(broker_id)

    def unfenced_brokers(self) -> list[BrokerRegistration]:
        """The unfenced brokers, by id."""
        return [self.brokers[broker_id] for broker_id in sorted(self.brokers) if not self.brokers[broker_id].is_fenced]

    def is_active(self, broker_id: int) -> bool:
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def records(self) -> Iterator[RegisterBrokerRecord | RegisterControllerRecord]:
        for broker_id in sorted(self.brokers):
            yield self.brokers[broker_id].to_record()
        for controller_id in sorted(self.controllers):
            yield self.controllers[controller_id].to_record()


def _ranges(features: list[RecordedFeature]) -> dict[str, FeatureRange]:
    return {data.name: FeatureRange(data.min_supported_version, data.max_supported_version) for data in features}


def _feature_data(features: Mapping[str, FeatureRange]) -> list[RecordedFeature]:
    return [
        RecordedFeature(
            name=name,
            min_supported_version=features[name].min_level,
            max_supported_version=features[name].max_level,
        )
        for name in sorted(features)
    ]
