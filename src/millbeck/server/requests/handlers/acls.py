"""DescribeAcls, CreateAcls, DeleteAcls.

Behaviour
- Without an authorizer ACLs would have no effect, so each result is SECURITY_DISABLED.
- Brokers forward CreateAcls and DeleteAcls to the active controller. DescribeAcls is answered by any node from its own
  metadata, so it may lag behind a creation that was just acknowledged.
- Creating an ACL that exists is not an error, and neither is a deletion that matches no ACL.
- CIDR networks and host names are stored as the host of an ACL, as in Kafka 4.3, and match no client.
Versions
- 2: user principals of other types. 3: resource type USER.
"""

from __future__ import annotations

from millbeck.controller.acls import filter_of
from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, SecurityDisabled
from millbeck.security.authorizer import CLUSTER_NAME, AllowAll, GuardedAuthorizer, Operation, ResourceType
from millbeck.server.loop.tasks import TimeSlices
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.acls import (
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilterResult,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)

_NO_AUTHORIZER = "No Authorizer is configured."


def _check(call: Call, operation: Operation) -> None:
    if not call.may(operation, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    if isinstance(call.broker.authorizer, AllowAll):
        raise SecurityDisabled(_NO_AUTHORIZER)
    if isinstance(call.broker.authorizer, GuardedAuthorizer):
        raise SecurityDisabled("The authorizer of this cluster does not decide by ACLs.")


@handles(29, needs=[Need(Operation.DESCRIBE, ResourceType.CLUSTER)])
async def handle_describe_acls(call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    _check(call, Operation.DESCRIBE)
    asked = filter_of(request)
    slices = TimeSlices(call.broker.environment.clock)
    resources: dict[tuple[int, int, str], DescribeAclsResource] = {}
    for entry in call.broker.image.acls.by_id.values():
        if asked.matches(entry):
            key = (entry.resource_type, entry.pattern_type, entry.resource_name)
            resource = resources.get(key)
            if resource is None:
                resource = resources[key] = DescribeAclsResource(
                    resource_type=entry.resource_type,
                    resource_name=entry.resource_name,
                    pattern_type=entry.pattern_type,
                )
            resource.acls.append(AclDescription(entry.principal, entry.host, entry.operation, entry.permission_type))
        await slices.yield_to_loop()
    return DescribeAclsResponse(resources=list(resources.values()))


def create_error(request: CreateAclsRequest | None, version: int, error: ApiError) -> CreateAclsResponse | None:
    if request is None:
        return None
    return CreateAclsResponse(results=[AclCreationResult(error.code, error.message) for _ in request.creations])


@handles(30, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=create_error)
async def handle_create_acls(call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    _check(call, Operation.ALTER)
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.create_acls(image, request), by=call)


def delete_error(request: DeleteAclsRequest | None, version: int, error: ApiError) -> DeleteAclsResponse | None:
    if request is None:
        return None
    return DeleteAclsResponse(
        filter_results=[DeleteAclsFilterResult(error.code, error.message) for _ in request.filters]
    )


@handles(31, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)], error_reply=delete_error)
async def handle_delete_acls(call: Call, request: DeleteAclsRequest) -> DeleteAclsResponse:
    _check(call, Operation.ALTER)
    broker = call.broker
    return await broker.quorum.submit(lambda image: broker.controller.delete_acls(image, request), by=call)
