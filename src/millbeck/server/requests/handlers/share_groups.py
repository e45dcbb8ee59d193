"""ShareGroupHeartbeat and ShareGroupDescribe: the members of share groups (KIP-932).

Behaviour
- A heartbeat with epoch 0 joins, -1 leaves; the answer carries the partitions when they are others than before.
- With share.version 0 both are UNSUPPORTED_VERSION. An id that is another kind of group is GROUP_ID_NOT_FOUND.
- A member that is waiting for partitions is asked to come back soon.
Versions
- 1 is the only one.
"""

from __future__ import annotations

from millbeck.coordinator.runtime.result import Reply
from millbeck.kernel.errors import ApiError, GroupAuthorizationFailed, TopicAuthorizationFailed
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.server.handlers.gather import Gather
from millbeck.server.handlers.share_fetch import check_share_groups_are_on
from millbeck.wire.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from millbeck.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest


@handles(76)
def handle_share_group_heartbeat(call: Call, request: ShareGroupHeartbeatRequest) -> None:
    check_share_groups_are_on(call)
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    for name in request.subscribed_topic_names or ():
        if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed(f"describing {name} is not allowed")
    broker = call.broker
    call.hold()
    broker.groups.write(
        request.group_id,
        lambda shard: shard.share_heartbeat(
            request, client_id=call.client_id or "", client_host=call.client_host, now_ms=broker.now_ms()
        ),
        Reply(call.reply, call.fail),
    )


def describe_error_reply(
    request: ShareGroupDescribeRequest | None, version: int, error: ApiError
) -> ShareGroupDescribeResponse | None:
    if request is None:
        return None
    return ShareGroupDescribeResponse(groups=[_refused(group_id, error) for group_id in request.group_ids])


def _refused(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(error_code=error.code, error_message=str(error) or None, group_id=group_id)


@handles(77, error_reply=describe_error_reply)
def handle_share_group_describe(call: Call, request: ShareGroupDescribeRequest) -> None:
    check_share_groups_are_on(call)

    def finish(groups: list[DescribedGroup]) -> None:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = call.authorized_operations(ResourceType.GROUP, group.group_id)
        call.reply(ShareGroupDescribeResponse(groups=groups))

    gather: Gather[DescribedGroup] = Gather(finish)
    for group_id in dict.fromkeys(request.group_ids):
        _ask(call, group_id, gather)
    gather.close()


def _ask(call: Call, group_id: str, gather: Gather[DescribedGroup]) -> None:
    reply = gather.ask(lambda error: _refused(group_id, error))
    if call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        call.broker.groups.read(group_id, lambda shard, at: shard.share.describe(group_id, at), reply)
    else:
        reply.fail(GroupAuthorizationFailed())
