"""ExpireDelegationToken: let a token live shorter, or end it."""

from __future__ import annotations

from millbeck.wire.schema import Kind, bytes_, int16, int32, int64, message


@message(kind=Kind.REQUEST, api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """The token is named by its secret."""

    hmac: bytes = bytes_()
    expiry_time_period_ms: int = int64()


@message(kind=Kind.RESPONSE, api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """When it expires now."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
