"""DeleteAcls: remove access rules that match filters."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@struct
class DeleteAclsFilter:
    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@message(kind=Kind.REQUEST, api_key=31, versions="1-3", flexible="2+")
class DeleteAclsRequest:
    """Each filter stands for itself."""

    filters: list[DeleteAclsFilter] = array(of=DeleteAclsFilter)


@struct
class DeleteAclsMatchingAcl:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DeleteAclsFilterResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    matching_acls: list[DeleteAclsMatchingAcl] = array(of=DeleteAclsMatchingAcl)


@message(kind=Kind.RESPONSE, api_key=31, versions="1-3", flexible="2+")
class DeleteAclsResponse:
    """What each filter removed."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    filter_results: list[DeleteAclsFilterResult] = array(of=DeleteAclsFilterResult)
