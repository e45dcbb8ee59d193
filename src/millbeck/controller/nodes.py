"""Brokers and controllers register, brokers are fenced and unfenced.

A broker's epoch is the offset of the record that registered it, so a decision needs to know where its records will be:
the image it is made on stands for everything appended, and its first record is at ``image.offset + 1``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from millbeck.controller.partitions import leaders_on_fence, leaders_on_unfence
from millbeck.controller.result import Result
from millbeck.kernel.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InvalidRegistration,
    StaleBrokerEpoch,
    UnsupportedVersion,
)
from millbeck.kernel.ids import Uuid
from millbeck.metadata.features import CONTROLLER_REGISTRATION_FROM, SUPPORTED_FEATURES, FeatureRange
from millbeck.metadata.image import BrokerRegistration, ControllerRegistration, Endpoint, MetadataImage
from millbeck.metadata.records import BrokerRegistrationChangeRecord, MetadataRecord, UnregisterBrokerRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """What a process says about itself when it starts."""

    node_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: dict[str, FeatureRange] = field(default_factory=lambda: dict(SUPPORTED_FEATURES))
    rack: str | None = None
    directories: tuple[Uuid, ...] = ()


def register_broker(image: MetadataImage, registration: Registration, *, has_live_session: bool = False) -> Result[int]:
    """The broker's epoch. It begins fenced. ``has_live_session``: a process of that id is heard from regularly."""
    existing = image.cluster.broker(registration.node_id)
    if existing is not None and has_live_session and existing.incarnation_id != registration.incarnation_id:
        raise DuplicateBrokerRegistration(
            f"Another broker is registered with broker id {registration.node_id}, and it is alive."
        )
    if not registration.endpoints:
        raise InvalidRegistration("A broker must say where it listens.")
    if len({endpoint.listener for endpoint in registration.endpoints}) != len(registration.endpoints):
        raise InvalidRegistration("A broker listens twice under one listener name.")
    for feature, level in sorted(image.features.levels.items()):
        if level not in registration.features.get(feature, FeatureRange(0, 0)):
            raise UnsupportedVersion(
                f"Unable to register because the broker does not support finalized version {level} of {feature}."
            )
    epoch = image.offset + 1
    broker = BrokerRegistration(
        broker_id=registration.node_id,
        epoch=epoch,
        incarnation_id=registration.incarnation_id,
        endpoints=registration.endpoints,
        features=registration.features,
        rack=registration.rack,
        directories=registration.directories,
        cordoned_directories=(),
    )
    return Result(response=epoch, records=[broker.to_record()])


def unfence_broker(image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
    """The broker may lead; it does at once where nobody else can. Partitions may follow in batches of their own."""
    broker = _registered(image, broker_id, epoch)
    if not broker.is_fenced:
        return Result(response=None)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=-1)
    return Result(response=None, records=[change, *leaders_on_unfence(image, broker_id)], is_atomic=False)


def fence_broker(image: MetadataImage, broker_id: int, epoch: int) -> Result[None]:
    """The broker leads nothing from here on."""
    broker = _registered(image, broker_id, epoch)
    if broker.is_fenced:
        return Result(response=None)
    change = BrokerRegistrationChangeRecord(broker_id=broker_id, broker_epoch=epoch, fenced=1)
    return Result(response=None, records=[change, *leaders_on_fence(image, broker_id)], is_atomic=False)


def unregister_broker(image: MetadataImage, broker_id: int) -> Result[None]:
    broker = image.cluster.broker(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered
    records: list[MetadataRecord] = leaders_on_fence(image, broker_id)
    records.append(UnregisterBrokerRecord(broker_id=broker_id, broker_epoch=broker.epoch))
    return Result(response=None, records=records, is_atomic=False)


def register_controller(image: MetadataImage, registration: Registration) -> Result[None]:
    """A controller says where it listens; clusters older than 3.7 have no record for that."""
    if image.features.metadata_version < CONTROLLER_REGISTRATION_FROM:
        return Result(response=None)
    controller = ControllerRegistration(
        controller_id=registration.node_id,
        incarnation_id=registration.incarnation_id,
        endpoints=registration.endpoints,
        features=registration.features,
    )
    if image.cluster.controllers.get(registration.node_id) == controller:
        return Result(response=None)
    return Result(response=None, records=[controller.to_record()])


def _registered(image: MetadataImage, broker_id: int, epoch: int) -> BrokerRegistration:
    broker = image.cluster.broker(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker {broker_id} is not registered.")
    if broker.epoch != epoch:
        raise StaleBrokerEpoch(f"Broker {broker_id} has epoch {broker.epoch}, not {epoch}.")
    return broker
