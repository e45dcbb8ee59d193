"""CreateDelegationToken: a token that lets others act for its owner."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, bytes_, int16, int32, int64, message, string, struct


@struct
class CreatableRenewers:
    principal_type: str = string()
    principal_name: str = string()


@message(kind=Kind.REQUEST, api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    """Version 3 may name an owner other than the requester."""

    owner_principal_type: str | None = string(versions="3+", nullable="0+")
    owner_principal_name: str | None = string(versions="3+", nullable="0+")
    renewers: list[CreatableRenewers] = array(of=CreatableRenewers)
    max_lifetime_ms: int = int64()


@message(kind=Kind.RESPONSE, api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The token and its secret."""

    error_code: int = int16()
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp_ms: int = int64()
    expiry_timestamp_ms: int = int64()
    max_timestamp_ms: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
