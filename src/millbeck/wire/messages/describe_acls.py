"""DescribeAcls: access rules that match a filter."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int8, int16, int32, message, string, struct


@message(kind=Kind.REQUEST, api_key=29, versions="1-3", flexible="2+")
class DescribeAclsRequest:
    """Null and the types for any match everything."""

    resource_type_filter: int = int8()
    resource_name_filter: str | None = string(nullable="0+")
    pattern_type_filter: int = int8(default=3)
    principal_filter: str | None = string(nullable="0+")
    host_filter: str | None = string(nullable="0+")
    operation: int = int8()
    permission_type: int = int8()


@struct
class AclDescription:
    principal: str = string()
    host: str = string()
    operation: int = int8()
    permission_type: int = int8()


@struct
class DescribeAclsResource:
    resource_type: int = int8(doc="2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group.")
    resource_name: str = string()
    pattern_type: int = int8(default=3)
    acls: list[AclDescription] = array(of=AclDescription)


@message(kind=Kind.RESPONSE, api_key=29, versions="1-3", flexible="2+")
class DescribeAclsResponse:
    """Rules grouped by resource."""

    throttle_time_ms: int = int32(doc="How long a quota holds this client back.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(of=DescribeAclsResource)
