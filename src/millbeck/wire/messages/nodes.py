"""Brokers and controllers: registration, heartbeats, producer id blocks, features, envelopes."""

from __future__ import annotations

from millbeck.wire.schema import (
    Kind,
    array,
    boolean,
    bytes_,
    int8,
    int16,
    int32,
    int64,
    message,
    string,
    struct,
    uint16,
    uuid,
)


@struct
class Listener:
    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


@struct
class Feature:
    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


@message(kind=Kind.REQUEST, api_key=62, versions="0-4", flexible="0+")
class BrokerRegistrationRequest:
    """Register a broker; version 2 adds directories, version 4 allows features with minimum level 0."""

    broker_id: int = int32()
    cluster_id: str = string()
    incarnation_id: bytes = uuid()
    listeners: list[Listener] = array(of=Listener)
    features: list[Feature] = array(of=Feature)
    rack: str | None = string(nullable="0+")
    is_migrating_zk_broker: bool = boolean(versions="1+")
    log_dirs: list[bytes] = array(of=uuid, versions="2+", ignorable=True)
    previous_broker_epoch: int = int64(versions="3+", default=-1, ignorable=True)


@message(kind=Kind.RESPONSE, api_key=62, versions="0-4", flexible="0+")
class BrokerRegistrationResponse:
    """The broker epoch."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)


@message(kind=Kind.REQUEST, api_key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatRequest:
    """Heartbeat of a broker; version 1 reports offline directories, version 2 cordoned ones."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    current_metadata_offset: int = int64()
    want_fence: bool = boolean()
    want_shut_down: bool = boolean()
    offline_log_dirs: list[bytes] = array(of=uuid, versions="1+", tag=0)
    cordoned_log_dirs: list[bytes] | None = array(of=uuid, versions="2+", nullable="0+", tag=1, default=None)


@message(kind=Kind.RESPONSE, api_key=63, versions="0-2", flexible="0+")
class BrokerHeartbeatResponse:
    """The broker's state as known to the controller."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    is_caught_up: bool = boolean()
    is_fenced: bool = boolean(default=True)
    should_shut_down: bool = boolean()


@message(kind=Kind.REQUEST, api_key=70, versions="0", flexible="0+")
class ControllerRegistrationRequest:
    """Register a controller with its endpoints and supported features."""

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(of=Listener)
    features: list[Feature] = array(of=Feature)


@message(kind=Kind.RESPONSE, api_key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    """The result as an error code."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.REQUEST, api_key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest:
    """Unregister a broker that is permanently shut down."""

    broker_id: int = int32()


@message(kind=Kind.RESPONSE, api_key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """The result as an error code."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.REQUEST, api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsRequest:
    """Allocate a block of producer ids for a registered broker."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


@message(kind=Kind.RESPONSE, api_key=67, versions="0", flexible="0+")
class AllocateProducerIdsResponse:
    """The block: its first id and its length."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()


@struct
class FeatureUpdateKey:
    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean(versions="0")
    upgrade_type: int = int8(versions="1+", default=1, doc="1 upgrade, 2 safe downgrade, 3 unsafe downgrade.")


@message(kind=Kind.REQUEST, api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesRequest:
    """Update finalized features; level 0 removes one. Version 1 has upgrade types and can only validate."""

    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(of=FeatureUpdateKey)
    validate_only: bool = boolean(versions="1+", doc="Only validate the request.")


@struct
class UpdatableFeatureResult:
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=57, versions="0-2", flexible="0+")
class UpdateFeaturesResponse:
    """The result, for each feature up to version 1."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[UpdatableFeatureResult] = array(of=UpdatableFeatureResult, versions="0-1", ignorable=True)


@message(kind=Kind.REQUEST, api_key=58, versions="0", flexible="0+")
class EnvelopeRequest:
    """A forwarded request, with its own header."""

    request_data: bytes = bytes_()
    request_principal: bytes | None = bytes_(nullable="0+")
    client_host_address: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    """The response to the forwarded request, or an error."""

    response_data: bytes | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()
