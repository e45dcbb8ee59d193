"""ACLs: CreateAcls, DescribeAcls, DeleteAcls."""

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
    """Create ACLs; one that exists already is not an error."""

    creations: list[AclCreation] = array(of=AclCreation)


@struct
class AclCreationResult:
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")


@message(kind=Kind.RESPONSE, api_key=30, versions="1-3", flexible="2+")
class CreateAclsResponse:
    """The result for each rule, in order."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    results: list[AclCreationResult] = array(of=AclCreationResult)


@message(kind=Kind.REQUEST, api_key=29, versions="1-3", flexible="2+")
class DescribeAclsRequest:
    """Describe ACLs; null values and the ANY types match everything."""

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
    """ACLs grouped by resource."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    resources: list[DescribeAclsResource] = array(of=DescribeAclsResource)


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
    """Delete the ACLs that match any of the filters."""

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
    """The ACLs deleted by each filter."""

    throttle_time_ms: int = int32(doc="Throttle time due to a quota violation.")
    filter_results: list[DeleteAclsFilterResult] = array(of=DeleteAclsFilterResult)
