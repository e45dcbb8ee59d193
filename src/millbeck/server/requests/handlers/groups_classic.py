"""Classic groups: JoinGroup, SyncGroup, Heartbeat, LeaveGroup; DescribeGroups, ListGroups, DeleteGroups.

Behaviour
- JoinGroup and SyncGroup are answered when their phase of the rebalance ends; later requests on the connection wait
  until then.
- A heartbeat to a coordinator that is still loading succeeds: it cannot tell yet whether the member is valid.
- SyncGroup from version 5 on must contain protocol type and protocol name.
- ListGroups lists the groups that the client may describe; DescribeGroups and DeleteGroups answer each group once.
Versions
- JoinGroup 4: MEMBER_ID_REQUIRED. 5: static members. 7: protocol type. 9: SkipAssignment.
- LeaveGroup 3: many members, each with its error. DescribeGroups 6: GROUP_ID_NOT_FOUND.
- ListGroups 4: states; 5: types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.shard import BATCHED_LEAVE_VERSION
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    GroupAuthorizationFailed,
    InconsistentGroupProtocol,
    UnknownMemberId,
)
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.metadata.new_ids import new_uuid_text
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.audited import audited
from millbeck.wire.messages.classic_groups import (
    DescribedClassicGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
    SyncGroupRequest,
)
from millbeck.wire.messages.groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

PROTOCOL_NAMED_VERSION = 5
AUTHORIZED_OPERATIONS_VERSION = 3
NULL_PROTOCOL_VERSION = 7
"""The first version of JoinGroup in which no protocol is null; before, it is empty."""


def _check_may_read(call: Call, group_id: str) -> None:
    if not call.may(Operation.READ, ResourceType.GROUP, group_id):
        raise GroupAuthorizationFailed


def join_error_reply(request: JoinGroupRequest | None, version: int, error: ApiError) -> JoinGroupResponse:
    return _joined(JoinGroupResponse(error_code=error.code), version)


def _joined(response: JoinGroupResponse, version: int) -> JoinGroupResponse:
    if not response.protocol_name:
        response.protocol_name = None if version >= NULL_PROTOCOL_VERSION else ""
    return response


@handles(11, needs=[Need(Operation.READ, ResourceType.GROUP)], error_reply=join_error_reply)
def handle_join_group(call: Call, request: JoinGroupRequest) -> None:
    _check_may_read(call, request.group_id)
    broker = call.broker
    call.hold()
    new_uuid = new_uuid_text(broker.environment.randomness)
    client = Client(client_id=call.client_id or "", host=call.client_host)
    reply: ResponseCallback[JoinGroupResponse] = ResponseCallback(
        lambda response: call.reply(_joined(response, call.version)), call.fail
    )
    broker.groups.write(
        request.group_id,
        lambda shard: shard.join(
            request, version=call.version, client=client, new_uuid=new_uuid, reply=reply, now_ms=broker.now_ms()
        ),
        reply,
    )


@handles(14, needs=[Need(Operation.READ, ResourceType.GROUP)])
def handle_sync_group(call: Call, request: SyncGroupRequest) -> None:
    if call.version >= PROTOCOL_NAMED_VERSION and (request.protocol_type is None or request.protocol_name is None):
        raise InconsistentGroupProtocol("protocol type and protocol name must be set")
    _check_may_read(call, request.group_id)
    call.hold()
    reply = ResponseCallback(call.reply, call.fail)
    call.broker.groups.write(request.group_id, lambda shard: shard.sync(request, reply), reply)


@handles(12, needs=[Need(Operation.READ, ResourceType.GROUP)])
def handle_heartbeat(call: Call, request: HeartbeatRequest) -> None:
    _check_may_read(call, request.group_id)

    def fail(error: ApiError) -> None:
        if isinstance(error, CoordinatorLoadInProgress):
            call.reply(HeartbeatResponse())
        else:
            call.fail(error)

    call.broker.groups.write(
        request.group_id, lambda shard: shard.heartbeat(request), ResponseCallback(call.reply, fail)
    )


@handles(13, needs=[Need(Operation.READ, ResourceType.GROUP)])
def handle_leave_group(call: Call, request: LeaveGroupRequest) -> None:
    _check_may_read(call, request.group_id)
    broker = call.broker

    def fail(error: ApiError) -> None:
        if isinstance(error, UnknownMemberId) and call.version >= BATCHED_LEAVE_VERSION:
            members = [MemberResponse(one.member_id, one.group_instance_id, error.code) for one in request.members]
            call.reply(LeaveGroupResponse(members=members))
        else:
            call.fail(error)

    broker.groups.write(
        request.group_id,
        lambda shard: shard.leave(request, call.version, broker.now_ms()),
        ResponseCallback(call.reply, fail),
    )


def describe_error_reply(
    request: DescribeGroupsRequest | None, version: int, error: ApiError
) -> DescribeGroupsResponse | None:
    if request is None:
        return None
    return DescribeGroupsResponse(groups=[_described_error(group_id, error) for group_id in request.groups])


def _described_error(group_id: str, error: ApiError) -> DescribedClassicGroup:
    return DescribedClassicGroup(group_id=group_id, error_code=error.code)


@handles(15, needs=[Need(Operation.DESCRIBE, ResourceType.GROUP)], error_reply=describe_error_reply)
def handle_describe_groups(call: Call, request: DescribeGroupsRequest) -> None:
    wants_operations = request.include_authorized_operations and call.version >= AUTHORIZED_OPERATIONS_VERSION

    def finish(described: list[DescribedClassicGroup]) -> None:
        for group in described:
            if wants_operations and group.error_code == 0:
                group.authorized_operations = call.authorized_operations(ResourceType.GROUP, group.group_id)
        call.reply(DescribeGroupsResponse(groups=described))

    gather: ResultCollector[DescribedClassicGroup] = ResultCollector(finish)
    for group_id in dict.fromkeys(request.groups):
        _ask_description(call, group_id, gather)
    gather.close()


def _ask_description(call: Call, group_id: str, gather: ResultCollector[DescribedClassicGroup]) -> None:
    reply = gather.ask(lambda error: _described_error(group_id, error))
    if call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        version = call.version
        call.broker.groups.read(group_id, lambda shard, at: shard.describe_groups([group_id], version, at)[0], reply)
    else:
        reply.fail(GroupAuthorizationFailed())


@handles(
    16,
    needs=[
        Need(Operation.DESCRIBE, ResourceType.CLUSTER, denied="left out of the response")
        | Need(Operation.DESCRIBE, ResourceType.GROUP)
    ],
)
def handle_list_groups(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = call.broker.groups.read_all(
        lambda shard, at: shard.list_groups(request.states_filter, request.types_filter, at)
    )
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True):
        groups = [
            group
            for group in groups
            if call.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id, is_filter=True)
        ]
    return ListGroupsResponse(groups=groups)


def delete_error_reply(
    request: DeleteGroupsRequest | None, version: int, error: ApiError
) -> DeleteGroupsResponse | None:
    if request is None:
        return None
    return DeleteGroupsResponse(results=_deletion_errors(list(dict.fromkeys(request.groups_names)), error))


def _deletion_errors(group_ids: Sequence[str], error: ApiError) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id, error.code) for group_id in group_ids]


@handles(42, needs=[Need(Operation.DELETE, ResourceType.GROUP)], error_reply=delete_error_reply)
def handle_delete_groups(call: Call, request: DeleteGroupsRequest) -> None:
    groups = call.broker.groups

    def finish(results: list[list[DeletableGroupResult]]) -> None:
        for part in results:
            for result in part:
                if not result.error_code:
                    audited(call, "group", result.group_id, before="a group")
        call.reply(DeleteGroupsResponse(results=[result for part in results for result in part]))

    gather: ResultCollector[list[DeletableGroupResult]] = ResultCollector(finish)
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        if call.may(Operation.DELETE, ResourceType.GROUP, group_id):
            by_partition.setdefault(groups.partition_for(group_id), []).append(group_id)
        else:
            _ask_of([group_id], gather).fail(GroupAuthorizationFailed())
    for group_ids in by_partition.values():
        _ask_deletion(call, group_ids, gather)
    gather.close()


def _ask_deletion(call: Call, group_ids: list[str], gather: ResultCollector[list[DeletableGroupResult]]) -> None:
    reply = _ask_of(group_ids, gather)
    call.hold()

    def delete(kept: Mapping[str, ApiError]) -> None:
        """Delete the groups after the share coordinators have deleted their state, except those in ``kept``."""
        refused = [DeletableGroupResult(group_id, error.code) for group_id, error in kept.items()]
        gone = [group_id for group_id in group_ids if group_id not in kept]
        answer: ResponseCallback[list[DeletableGroupResult]] = ResponseCallback(
            lambda found: reply.reply(found + refused), reply.fail
        )
        call.broker.groups.write(group_ids[0], lambda shard: shard.delete_groups(gone), answer)

    call.broker.state_initializer.before_deletion(group_ids, delete)


def _ask_of(
    group_ids: list[str], gather: ResultCollector[list[DeletableGroupResult]]
) -> ResponseCallback[list[DeletableGroupResult]]:
    return gather.ask(lambda error: _deletion_errors(group_ids, error))
