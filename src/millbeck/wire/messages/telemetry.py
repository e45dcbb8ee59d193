"""Client metrics (KIP-714): GetTelemetrySubscriptions, PushTelemetry."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, boolean, bytes_, int8, int16, int32, message, string, uuid


@message(kind=Kind.REQUEST, api_key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsRequest:
    """Request the client's subscription; a zero client instance id requests a new one."""

    client_instance_id: bytes = uuid()


@message(kind=Kind.RESPONSE, api_key=71, versions="0", flexible="0+")
class GetTelemetrySubscriptionsResponse:
    """The subscription; an empty list of metrics selects none, a single empty name selects all."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    accepted_compression_types: list[int] = array(of=int8)
    push_interval_ms: int = int32()
    telemetry_max_bytes: int = int32()
    delta_temporality: bool = boolean()
    requested_metrics: list[str] = array(of=string)


@message(kind=Kind.REQUEST, api_key=72, versions="0", flexible="0+")
class PushTelemetryRequest:
    """Push metrics as OTLP bytes, compressed with an accepted codec."""

    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    """The result as an error code."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
