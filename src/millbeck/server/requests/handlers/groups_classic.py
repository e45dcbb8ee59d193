"""JoinGroup, SyncGroup, Heartbeat, LeaveGroup; DescribeGroups, ListGroups, DeleteGroups.

Behaviour
- JoinGroup and SyncGroup are held until their phase of the rebalance ends, and their connection with them.
- A heartbeat to a coordinator that is still loading succeeds: the member is not to blame.
- SyncGroup from version 5 on must name protocol type and protocol.
- ListGroups shows the groups that the client may describe; DescribeGroups, DeleteGroups answer once for each group.
Versions
- JoinGroup 4: MEMBER_ID_REQUIRED. 5: static members. 7: protocol type. 9: SkipAssignment.
- LeaveGroup 3: many members, each with its error. DescribeGroups 6: GROUP_ID_NOT_FOUND.
- ListGroups 4: states; 5: types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.runtime.result import Reply
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    GroupAuthorizationFailed,
    InconsistentGroupProtocol,
)
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType, authorized_operations
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.server.handlers.gather import Gather
from millbeck.server.new_ids import new_uuid_text
from millbeck.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from millbeck.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from millbeck.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from millbeck.wire.messages.join_group import JoinGroupRequest
from millbeck.wire.messages.leave_group import LeaveGroupRequest
from millbeck.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from millbeck.wire.messages.sync_group import SyncGroupRequest

PROTOCOL_NAMED_VERSION = 5
AUTHORIZED_OPERATIONS_VERSION = 3


def _check_may_read(call: Call, group_id: str) -> None:
    if not call.may(Operation.READ, ResourceType.GROUP, group_id):
        raise GroupAuthorizationFailed


@handles(11)
def handle_join_group(call: Call, request: JoinGroupRequest) -> None:
    _check_may_read(call, request.group_id)
    broker = call.broker
    call.hold()
    new_uuid = new_uuid_text(broker.environment.randomness)
    client = Client(client_id=call.client_id or "", host=call.client_host)
    reply = Reply(call.reply, call.fail)
    broker.groups.write(
        request.group_id,
        lambda shard: shard.join(
            request, version=call.version, client=client, new_uuid=new_uuid, reply=reply, now_ms=broker.now_ms()
        ),
        reply,
    )


@handles(14)
def handle_sync_group(call: Call, request: SyncGroupRequest) -> None:
    if call.version >= PROTOCOL_NAMED_VERSION and (request.protocol_type is None or request.protocol_name is None):
        raise InconsistentGroupProtocol("protocol type and protocol name must be given")
    _check_may_read(call, request.group_id)
    call.hold()
    reply = Reply(call.reply, call.fail)
    call.broker.groups.write(request.group_id, lambda shard: shard.sync(request, reply), reply)


@handles(12)
def handle_heartbeat(call: Call, request: HeartbeatRequest) -> None:
    _check_may_read(call, request.group_id)

    def fail(error: ApiError) -> None:
        if isinstance(error, CoordinatorLoadInProgress):
            call.reply(HeartbeatResponse())
        else:
            call.fail(error)

    call.broker.groups.write(request.group_id, lambda shard: shard.heartbeat(request), Reply(call.reply, fail))


@handles(13)
def handle_leave_group(call: Call, request: LeaveGroupRequest) -> None:
    _check_may_read(call, request.group_id)
    broker = call.broker
    broker.groups.write(
        request.group_id,
        lambda shard: shard.leave(request, call.version, broker.now_ms()),
        Reply(call.reply, call.fail),
    )


def describe_error_reply(
    request: DescribeGroupsRequest | None, version: int, error: ApiError
) -> DescribeGroupsResponse | None:
    if request is None:
        return None
    return DescribeGroupsResponse(groups=[_described_error(group_id, error) for group_id in request.groups])


def _described_error(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code)


@handles(15, error_reply=describe_error_reply)
def handle_describe_groups(call: Call, request: DescribeGroupsRequest) -> None:
    wants_operations = request.include_authorized_operations and call.version >= AUTHORIZED_OPERATIONS_VERSION

    def finish(described: list[DescribedGroup]) -> None:
        for group in described:
            if wants_operations and group.error_code == 0:
                group.authorized_operations = authorized_operations(
                    call.broker.authorizer,
                    call.principal,
                    call.connection.peer_host,
                    ResourceType.GROUP,
                    group.group_id,
                )
        call.reply(DescribeGroupsResponse(groups=described))

    gather: Gather[DescribedGroup] = Gather(finish)
    for group_id in dict.fromkeys(request.groups):
        _ask_description(call, group_id, gather)
    gather.close()


def _ask_description(call: Call, group_id: str, gather: Gather[DescribedGroup]) -> None:
    reply = gather.ask(lambda error: _described_error(group_id, error))
    if call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        version = call.version
        call.broker.groups.read(group_id, lambda shard, at: shard.describe_groups([group_id], version, at)[0], reply)
    else:
        reply.fail(GroupAuthorizationFailed())


@handles(16)
def handle_list_groups(call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    groups = call.broker.groups.read_all(
        lambda shard, at: shard.list_groups(request.states_filter, request.types_filter, at)
    )
    if not call.may(Operation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        groups = [group for group in groups if call.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)]
    return ListGroupsResponse(groups=groups)


def delete_error_reply(
    request: DeleteGroupsRequest | None, version: int, error: ApiError
) -> DeleteGroupsResponse | None:
    if request is None:
        return None
    return DeleteGroupsResponse(results=_deletion_errors(list(dict.fromkeys(request.groups_names)), error))


def _deletion_errors(group_ids: Sequence[str], error: ApiError) -> list[DeletableGroupResult]:
    return [DeletableGroupResult(group_id, error.code) for group_id in group_ids]


@handles(42, error_reply=delete_error_reply)
def handle_delete_groups(call: Call, request: DeleteGroupsRequest) -> None:
    groups = call.broker.groups

    def finish(results: list[list[DeletableGroupResult]]) -> None:
        call.reply(DeleteGroupsResponse(results=[result for part in results for result in part]))

    gather: Gather[list[DeletableGroupResult]] = Gather(finish)
    by_partition: dict[int, list[str]] = {}
    for group_id in dict.fromkeys(request.groups_names):
        if call.may(Operation.DELETE, ResourceType.GROUP, group_id):
            by_partition.setdefault(groups.partition_for(group_id), []).append(group_id)
        else:
            _ask_of([group_id], gather).fail(GroupAuthorizationFailed())
    for group_ids in by_partition.values():
        _ask_deletion(call, group_ids, gather)
    gather.close()


def _ask_deletion(call: Call, group_ids: list[str], gather: Gather[list[DeletableGroupResult]]) -> None:
    reply = _ask_of(group_ids, gather)
    call.hold()

    def delete(kept: Mapping[str, ApiError]) -> None:
        """The share coordinators have forgotten the share groups among them, except those that are kept."""
        refused = [DeletableGroupResult(group_id, error.code) for group_id, error in kept.items()]
        gone = [group_id for group_id in group_ids if group_id not in kept]
        answer: Reply[list[DeletableGroupResult]] = Reply(lambda found: reply.reply(found + refused), reply.fail)
        call.broker.groups.write(group_ids[0], lambda shard: shard.delete_groups(gone), answer)

    call.broker.keeper.before_deletion(group_ids, delete)


def _ask_of(group_ids: list[str], gather: Gather[list[DeletableGroupResult]]) -> Reply[list[DeletableGroupResult]]:
    return gather.ask(lambda error: _deletion_errors(group_ids, error))
