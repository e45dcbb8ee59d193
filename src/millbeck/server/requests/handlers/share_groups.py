"""ShareGroupHeartbeat and ShareGroupDescribe: membership of share groups (KIP-932).

Behaviour
- A heartbeat with epoch 0 joins, -1 leaves; the response contains the assignment when it has changed.
- With share.version 0 both are UNSUPPORTED_VERSION. The id of a group of another type is GROUP_ID_NOT_FOUND.
- A member that waits for its assignment gets a short heartbeat interval.
Versions
- 1 is the only one.
"""

from __future__ import annotations

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.kernel.errors import ApiError, GroupAuthorizationFailed, TopicAuthorizationFailed
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.described_topics import UNDESCRIBED_TOPICS, may_describe_all
from millbeck.server.requests.handlers.share_fetch import check_share_groups_are_on
from millbeck.wire.messages.share_groups import (
    DescribedShareGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatRequest,
)


@handles(
    76,
    needs=[
        Need(Operation.READ, ResourceType.GROUP),
        Need(Operation.DESCRIBE, ResourceType.TOPIC, when="for every subscribed topic"),
    ],
)
def handle_share_group_heartbeat(call: Call, request: ShareGroupHeartbeatRequest) -> None:
    check_share_groups_are_on(call)
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    for name in request.subscribed_topic_names or ():
        if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed(f"not authorized to describe topic {name}")
    broker = call.broker
    call.hold()
    broker.groups.write(
        request.group_id,
        lambda shard: shard.share_heartbeat(
            request, client_id=call.client_id or "", client_host=call.client_host, now_ms=broker.now_ms()
        ),
        ResponseCallback(call.reply, call.fail),
    )


def describe_error_reply(
    request: ShareGroupDescribeRequest | None, version: int, error: ApiError
) -> ShareGroupDescribeResponse | None:
    if request is None:
        return None
    return ShareGroupDescribeResponse(groups=[_refused(group_id, error) for group_id in request.group_ids])


def _refused(group_id: str, error: ApiError) -> DescribedShareGroup:
    return DescribedShareGroup(error_code=error.code, error_message=str(error) or None, group_id=group_id)


@handles(
    77,
    needs=[
        Need(Operation.DESCRIBE, ResourceType.GROUP),
        Need(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            when="for every topic that a member is assigned",
            denied="TOPIC_AUTHORIZATION_FAILED for the whole group",
        ),
    ],
    error_reply=describe_error_reply,
)
def handle_share_group_describe(call: Call, request: ShareGroupDescribeRequest) -> None:
    check_share_groups_are_on(call)

    def finish(described: list[DescribedShareGroup]) -> None:
        groups = [_refused_for_topics(call, group) or group for group in described]
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = call.authorized_operations(ResourceType.GROUP, group.group_id)
        call.reply(ShareGroupDescribeResponse(groups=groups))

    gather: ResultCollector[DescribedShareGroup] = ResultCollector(finish)
    for group_id in dict.fromkeys(request.group_ids):
        _ask(call, group_id, gather)
    gather.close()


def _refused_for_topics(call: Call, group: DescribedShareGroup) -> DescribedShareGroup | None:
    """The result for a group with topics that the client may not describe."""
    names = dict.fromkeys(each.topic_name for member in group.members for each in member.assignment.topic_partitions)
    if may_describe_all(call, names):
        return None
    return _refused(group.group_id, TopicAuthorizationFailed(UNDESCRIBED_TOPICS))


def _ask(call: Call, group_id: str, gather: ResultCollector[DescribedShareGroup]) -> None:
    reply = gather.ask(lambda error: _refused(group_id, error))
    if call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        call.broker.groups.read(group_id, lambda shard, at: shard.share.describe(group_id, at), reply)
    else:
        reply.fail(GroupAuthorizationFailed())
