"""Registration of brokers and controllers.

A broker's epoch is the offset of the record that registered it. So a decision needs to know the offset of its first
record, which is ``image.offset + 1``: the image includes everything appended. The registration record comes first, and
the partition changes caused by the end of the broker's previous process follow in the same batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millbeck.controller import broker_changes
from millbeck.controller.config_rules import ConfigRules
from millbeck.controller.result import Result, Steps
from millbeck.kernel.errors import (
    BrokerIdNotRegistered,
    DuplicateBrokerRegistration,
    InconsistentClusterId,
    InvalidRegistration,
    UnsupportedVersion,
)
from millbeck.kernel.ids import Uuid, uuid_text
from millbeck.metadata.features import (
    CONTROLLER_REGISTRATION_FROM,
    DIRECTORY_ASSIGNMENT_FROM,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    FeatureRange,
)
from millbeck.metadata.image import BrokerRegistration, ControllerRegistration, Endpoint, MetadataImage
from millbeck.metadata.image.directories import is_reserved
from millbeck.metadata.records import MetadataRecord

NOT_FINALIZED = 0
METADATA_VERSION_NOT_FINALIZED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRegistration:
    """The registration request of a process.

    ``previous_broker_epoch`` is the epoch of the last clean shutdown, -1 for none. It is None for older versions, which
    are assumed to have shut down cleanly. ``cluster_id`` None is not checked.
    """

    node_id: int
    incarnation_id: Uuid
    endpoints: tuple[Endpoint, ...]
    features: Mapping[str, FeatureRange] = field(default_factory=lambda: dict(SUPPORTED_FEATURES))
    rack: str | None = None
    directories: tuple[Uuid, ...] = ()
    cluster_id: str | None = None
    previous_broker_epoch: int | None = None


def register_broker(
    image: MetadataImage,
    registration: NodeRegistration,
    rules: ConfigRules,
    *,
    cluster_id: str | None = None,
    has_live_session: bool = False,
) -> Steps[Result[BrokerRegistration]]:
    """Register a broker, fenced; returns its registration. ``has_live_session``: the registered process has an active
    session.

    The same process may register again with other properties: its epoch and state are kept.
    """
    if None not in (cluster_id, registration.cluster_id) and cluster_id != registration.cluster_id:
        raise InconsistentClusterId(f"Expected cluster ID {cluster_id}, but got cluster ID {registration.cluster_id}")
    existing = image.cluster.broker(registration.node_id)
    is_same = existing is not None and existing.incarnation_id == registration.incarnation_id
    if has_live_session and not is_same:
        raise DuplicateBrokerRegistration(
            f"Another broker is registered with broker id {registration.node_id}, and its session is active. "
            "After a restart, the registration succeeds when the session of the previous process has expired."
        )
    _check_endpoints(registration)
    _check_directories(image, registration)
    _check_features(image, registration)
    tracks_directories = image.features.metadata_version >= DIRECTORY_ASSIGNMENT_FROM
    broker = BrokerRegistration(
        broker_id=registration.node_id,
        epoch=existing.epoch if existing is not None and is_same else image.offset + 1,
        incarnation_id=registration.incarnation_id,
        endpoints=registration.endpoints,
        features=_recorded_features(registration),
        rack=registration.rack,
        is_fenced=existing.is_fenced if existing is not None and is_same else True,
        in_controlled_shutdown=existing is not None and is_same and existing.in_controlled_shutdown,
        directories=registration.directories if tracks_directories else (),
        cordoned_directories=existing.cordoned_directories if existing is not None and is_same else (),
    )
    records: list[MetadataRecord] = [broker.to_record()]
    if not is_same:
        claimed = registration.previous_broker_epoch
        is_clean = claimed is None or (existing is not None and existing.epoch == claimed)
        records += yield from broker_changes.restarted(image, rules, broker.broker_id, is_clean=is_clean)
    return Result(response=broker, records=records)


def unregister_broker(image: MetadataImage, rules: ConfigRules, broker_id: int) -> Steps[Result[None]]:
    """Remove a broker's registration; a running broker learns this from the response to its next heartbeat."""
    broker = image.cluster.broker(broker_id)
    if broker is None:
        raise BrokerIdNotRegistered(f"Broker ID {broker_id} is not currently registered")
    records = yield from broker_changes.unregistered(image, rules, broker)
    return Result(response=None, records=records, is_atomic=False)


def register_controller(image: MetadataImage, registration: NodeRegistration) -> Result[None]:
    """Register the listeners of a controller; metadata versions before 3.7 have no such record."""
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


def _check_endpoints(registration: NodeRegistration) -> None:
    if not registration.endpoints:
        raise InvalidRegistration("A broker must have at least one listener.")
    if len({endpoint.listener for endpoint in registration.endpoints}) != len(registration.endpoints):
        raise InvalidRegistration("A broker has two listeners with the same name.")


def _check_directories(image: MetadataImage, registration: NodeRegistration) -> None:
    if image.features.metadata_version < DIRECTORY_ASSIGNMENT_FROM:
        return
    directories = registration.directories
    if not directories:
        raise InvalidRegistration("No directories specified in request")
    if any(is_reserved(directory) for directory in directories):
        raise InvalidRegistration("Reserved directory ID in request")
    if len(dict.fromkeys(directories)) != len(directories):
        raise InvalidRegistration("Duplicate directory ID in request")
    for broker_id in sorted(image.cluster.brokers):
        for directory in image.cluster.brokers[broker_id].directories:
            if broker_id != registration.node_id and directory in directories:
                raise InvalidRegistration(
                    f"Broker {broker_id} is already registered with directory {uuid_text(directory)}"
                )


def _recorded_features(registration: NodeRegistration) -> Mapping[str, FeatureRange]:
    """The supported features; without ``metadata.version`` only its first level is supported."""
    if METADATA_VERSION in registration.features:
        return registration.features
    return {**registration.features, METADATA_VERSION: FeatureRange(1, 1)}


def _check_features(image: MetadataImage, registration: NodeRegistration) -> None:
    features = _recorded_features(registration)
    for feature in sorted({*features, *image.features.levels}):
        default = METADATA_VERSION_NOT_FINALIZED if feature == METADATA_VERSION else NOT_FINALIZED
        level = image.features.levels.get(feature, default)
        supported = features.get(feature, FeatureRange(0, 0))
        if level not in supported:
            raise UnsupportedVersion(
                f"Unable to register because the broker does not support finalized version {level} of {feature}. "
                f"The broker wants a version between {supported.min_level} and {supported.max_level}, inclusive."
            )
