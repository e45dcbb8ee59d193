"""BrokerRegistration: a broker joins the cluster."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int16, int32, int64, message, string, struct, uint16, uuid


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
    """Version 2 brings directories, version 4 lets features start at level 0."""

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
    """The epoch of this registration."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    broker_epoch: int = int64(default=-1)
