"""DescribeUserScramCredentials: which SCRAM credentials users have."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@struct
class UserName:
    name: str = string()


@message(kind=Kind.REQUEST, api_key=50, versions="0", flexible="0+")
class DescribeUserScramCredentialsRequest:
    """Null or no users ask for all."""

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

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    results: list[DescribeUserScramCredentialsResult] = array(of=DescribeUserScramCredentialsResult)
