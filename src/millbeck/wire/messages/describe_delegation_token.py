"""DescribeDelegationToken: tokens and who may renew them."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, bytes_, int16, int32, int64, message, string, struct


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = string()
    principal_name: str = string()


@message(kind=Kind.REQUEST, api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """Null owners ask for all that the requester may see."""

    owners: list[DescribeDelegationTokenOwner] | None = array(of=DescribeDelegationTokenOwner, nullable="0+")


@struct
class DescribedDelegationTokenRenewer:
    principal_type: str = string()
    principal_name: str = string()


@struct
class DescribedDelegationToken:
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string(versions="3+")
    token_requester_principal_name: str = string(versions="3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = bytes_()
    renewers: list[DescribedDelegationTokenRenewer] = array(of=DescribedDelegationTokenRenewer)


@message(kind=Kind.RESPONSE, api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenResponse:
    """The tokens with their secrets."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(of=DescribedDelegationToken)
    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
