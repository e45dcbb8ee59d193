"""AlterUserScramCredentials: set and remove SCRAM credentials."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, bytes_, int8, int16, int32, message, string, struct


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
    """Passwords arrive salted and hashed."""

    deletions: list[ScramCredentialDeletion] = array(of=ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(of=ScramCredentialUpsertion)


@struct
class AlterUserScramCredentialsResult:
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=51, versions="0", flexible="0+")
class AlterUserScramCredentialsResponse:
    """The outcome for each user."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    results: list[AlterUserScramCredentialsResult] = array(of=AlterUserScramCredentialsResult)
