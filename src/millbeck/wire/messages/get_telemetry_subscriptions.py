"""GetTelemetrySubscriptions: which metrics a client shall push (KIP-714)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, int8, int16, int32, message, string, uuid


@message(kind=Kind.REQUEST, api_key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """The zero id asks to be given one."""

    client_instance_id: bytes = uuid()


@message(kind=Kind.RESPONSE, api_key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """No metrics means nothing to push, one empty name means all."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(of=int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(of=string)
