"""SASL, SCRAM credentials and delegation tokens."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, bytes_, int8, int16, int32, int64, message, string, struct


@message(kind=Kind.REQUEST, api_key=17, versions="0-1")
class SaslHandshakeRequest:
    """Select a SASL mechanism; after version 0 raw tokens follow, after version 1 SaslAuthenticate requests."""

    mechanism: str = string()


@message(kind=Kind.RESPONSE, api_key=17, versions="0-1")
class SaslHandshakeResponse:
    """The mechanisms enabled on this listener."""

    error_code: int = int16()
    mechanisms: list[str] = array(of=string)


@message(kind=Kind.REQUEST, api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """The client's next SASL token."""

    auth_bytes: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """The server's SASL token. Version 1 has the time until re-authentication (KIP-368)."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True, doc="0 if the session does not expire.")


@struct
class UserName:
    name: str = string()


@message(kind=Kind.REQUEST, api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """Null or empty users request all."""

    users: list[UserName] | None = array(of=UserName, nullable="0+")


@struct
class CredentialInfo:
    mechanism: int = int8()
    iterations: int = int32()


@struct
class DescribeUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    credential_infos: list[CredentialInfo] = array(of=CredentialInfo)


@message(kind=Kind.RESPONSE, api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsResponse:
    """Mechanisms and iterations, never secrets."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(of=DescribeUserScramCredentialsResult)


@struct
class ScramCredentialDeletion:
    name: str = string()
    mechanism: int = int8()


@struct
class ScramCredentialUpsertion:
    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = bytes_()
    salted_password: bytes = bytes_()


@message(kind=Kind.REQUEST, api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsRequest:
    """Alter SCRAM credentials; passwords are sent salted and hashed."""

    deletions: list[ScramCredentialDeletion] = array(of=ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(of=ScramCredentialUpsertion)


@struct
class AlterUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """The result for each user."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    results: list[AlterUserScramCredentialsResult] = array(of=AlterUserScramCredentialsResult)


@struct
class CreatableRenewers:
    principal_type: str = string()
    principal_name: str = string()


@message(kind=Kind.REQUEST, api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenRequest:
    """Create a delegation token; version 3 may set an owner other than the requester."""

    owner_principal_type: str | None = string(versions="3+", nullable="0+")
    owner_principal_name: str | None = string(versions="3+", nullable="0+")
    renewers: list[CreatableRenewers] = array(of=CreatableRenewers)
    max_lifetime_ms: int = int64()


@message(kind=Kind.RESPONSE, api_key=38, versions="1-3", flexible="2+")
class CreateDelegationTokenResponse:
    """The created token with its HMAC."""

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
    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")


@message(kind=Kind.REQUEST, api_key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenRequest:
    """The token is named by its secret."""

    hmac: bytes = bytes_()
    renew_period_ms: int = int64()


@message(kind=Kind.RESPONSE, api_key=39, versions="1-2", flexible="2+")
class RenewDelegationTokenResponse:
    """The new expiration time."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")


@message(kind=Kind.REQUEST, api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenRequest:
    """The token is named by its secret."""

    hmac: bytes = bytes_()
    expiry_time_period_ms: int = int64()


@message(kind=Kind.RESPONSE, api_key=40, versions="1-2", flexible="2+")
class ExpireDelegationTokenResponse:
    """The new expiration time."""

    error_code: int = int16()
    expiry_timestamp_ms: int = int64()
    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")


@struct
class DescribeDelegationTokenOwner:
    principal_type: str = string()
    principal_name: str = string()


@message(kind=Kind.REQUEST, api_key=41, versions="1-3", flexible="2+")
class DescribeDelegationTokenRequest:
    """Describe delegation tokens; null owners request all that the requester may describe."""

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
    """The tokens with their HMACs."""

    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(of=DescribedDelegationToken)
    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
