"""UnregisterBroker: forget a broker."""

from __future__ import annotations

from millbeck.wire.schema import Kind, int16, int32, message, string


@message(kind=Kind.REQUEST, api_key=64, versions="0", flexible="0+")
class UnregisterBrokerRequest:
    """The broker should be down for good."""

    broker_id: int = int32()


@message(kind=Kind.RESPONSE, api_key=64, versions="0", flexible="0+")
class UnregisterBrokerResponse:
    """The outcome."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
