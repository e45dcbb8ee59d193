"""CreateAcls: add access rules."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@struct
class AclCreation:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    resource_pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@message(kind=Kind.REQUEST, api_key=30, versions="1-3", flexible="2+")
class CreateAclsRequest:
    """A rule that is there already is no error."""

    creations: list[AclCreation] = array(of=AclCreation)


@struct
class AclCreationResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    """The outcome for each rule, in order."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    results: list[AclCreationResult] = array(of=AclCreationResult)
