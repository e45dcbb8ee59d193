"""PushTelemetry: a client's own metrics (KIP-714)."""

from __future__ import annotations

from millbeck.wire.schema import Kind, boolean, bytes_, int8, int16, int32, message, uuid


@message(kind=Kind.REQUEST, api_key=72, versions="0", flexible="0+")
class PushTelemetryRequest:
    """OTLP bytes, compressed as the subscription allows."""

    client_instance_id: bytes = uuid()
    subscription_id: int = int32()
    terminating: bool = boolean()
    compression_type: int = int8()
    metrics: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=72, versions="0", flexible="0+")
class PushTelemetryResponse:
    """The outcome."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
