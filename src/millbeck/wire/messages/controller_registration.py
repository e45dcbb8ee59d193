"""ControllerRegistration: a controller makes itself known to the active one."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, message, string, struct, uint16, uuid


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


@message(kind=Kind.REQUEST, api_key=70, versions="0", flexible="0+")
class ControllerRegistrationRequest:
    """Where it listens and what features it knows."""

    controller_id: int = int32()
    incarnation_id: bytes = uuid()
    zk_migration_ready: bool = boolean()
    listeners: list[Listener] = array(of=Listener)
    features: list[Feature] = array(of=Feature)


@message(kind=Kind.RESPONSE, api_key=70, versions="0", flexible="0+")
class ControllerRegistrationResponse:
    """The outcome."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
