"""ConsumerGroupHeartbeat, ConsumerGroupDescribe: groups in which the broker assigns (KIP-848).

Behaviour
- At ``group.version`` 0, or with the consumer protocol left out of ``group.coordinator.rebalance.protocols``, both are
  answered UNSUPPORTED_VERSION.
- A member must be allowed to read the group, and to see every topic that it names.
- ConsumerGroupDescribe answers once for each group.
Versions
- 1: members make up their ids; subscription by expression; members of the classic protocol are told apart.
"""

from __future__ import annotations

from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.consumer.heartbeat import Sender
from millbeck.coordinator.runtime.result import Reply
from millbeck.kernel.errors import ApiError, GroupAuthorizationFailed, TopicAuthorizationFailed, UnsupportedVersion
from millbeck.metadata.features import GROUP_VERSION
from millbeck.security.authorizer import Operation, ResourceType, authorized_operations
from millbeck.server.broker import Broker
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.server.handlers.gather import Gather
from millbeck.server.new_ids import new_uuid_text
from millbeck.wire.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from millbeck.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


def _check_enabled(broker: Broker) -> None:
    is_finalized = broker.image.features.level(GROUP_VERSION) >= 1
    if not is_finalized or "consumer" not in broker.config.group_coordinator.rebalance_protocols:
        raise UnsupportedVersion("The consumer group protocol is not enabled: group.version is 0.")


@handles(68)
def handle_consumer_group_heartbeat(call: Call, request: ConsumerGroupHeartbeatRequest) -> None:
    broker = call.broker
    _check_enabled(broker)
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    for name in request.subscribed_topic_names or ():
        if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
            raise TopicAuthorizationFailed
    sender = Sender(
        client=Client(client_id=call.client_id or "", host=call.client_host),
        version=call.version,
        new_uuid=new_uuid_text(broker.environment.randomness),
    )
    broker.groups.write(
        request.group_id,
        lambda shard: shard.consumer_heartbeat(request, sender, broker.now_ms()),
        Reply(call.reply, call.fail),
    )


def describe_error_reply(
    request: ConsumerGroupDescribeRequest | None, version: int, error: ApiError
) -> ConsumerGroupDescribeResponse | None:
    if request is None:
        return None
    return ConsumerGroupDescribeResponse(groups=[_described_error(group_id, error) for group_id in request.group_ids])


def _described_error(group_id: str, error: ApiError) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error.code, error_message=str(error) or None)


@handles(69, error_reply=describe_error_reply)
def handle_consumer_group_describe(call: Call, request: ConsumerGroupDescribeRequest) -> None:
    broker = call.broker
    _check_enabled(broker)

    def finish(described: list[DescribedGroup]) -> None:
        for group in described:
            if request.include_authorized_operations and group.error_code == 0:
                group.authorized_operations = authorized_operations(
                    broker.authorizer, call.principal, call.connection.peer_host, ResourceType.GROUP, group.group_id
                )
        call.reply(ConsumerGroupDescribeResponse(groups=described))

    gather: Gather[DescribedGroup] = Gather(finish)
    for group_id in dict.fromkeys(request.group_ids):
        _ask_description(call, group_id, gather)
    gather.close()


def _ask_description(call: Call, group_id: str, gather: Gather[DescribedGroup]) -> None:
    reply = gather.ask(lambda error: _described_error(group_id, error))
    if call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        call.broker.groups.read(group_id, lambda shard, at: shard.describe_consumer_group(group_id, at), reply)
    else:
        reply.fail(GroupAuthorizationFailed())
