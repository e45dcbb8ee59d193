"""StreamsGroupHeartbeat, StreamsGroupDescribe: groups of Kafka Streams applications (KIP-1071).

Behaviour
- At ``streams.version`` 0, or without ``streams`` in ``group.coordinator.rebalance.protocols``, both are
  UNSUPPORTED_VERSION.
- A member must be allowed to READ the group and to DESCRIBE every topic of the topology that it sends. Kafka's own
  internal topics and invalid names are STREAMS_INVALID_TOPOLOGY.
- Missing internal topics are created in the background if the member may CREATE them; otherwise, or if the creation
  failed, the response has the status MISSING_INTERNAL_TOPICS.
- StreamsGroupDescribe answers each group once.
Versions
- 0 is the only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from millbeck.controller.auto_creation import InternalTopic
from millbeck.coordinator.group.classic.join import Client
from millbeck.coordinator.group.streams.internal_topics import StatusCode
from millbeck.coordinator.group.streams.membership import HeartbeatAnswer
from millbeck.coordinator.group.streams.topology import named_topics
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.kernel.errors import (
    ApiError,
    GroupAuthorizationFailed,
    InvalidTopic,
    StreamsInvalidTopology,
    TopicAuthorizationFailed,
    UnsupportedVersion,
)
from millbeck.kernel.names import check_topic_name, is_internal_topic
from millbeck.metadata.features import STREAMS_VERSION
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.described_topics import may_describe_all
from millbeck.wire.messages.streams_groups import (
    DescribedStreamsGroup,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatRequest,
    Topology,
)

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.network.call import Call

UNDESCRIBED_TOPICS: Final = "The described group uses topics that the client is not authorized to describe."
FAILURES_SHOWN_MAX: Final = 3
NAMES_SHOWN_MAX: Final = 10


def _check_enabled(broker: Broker) -> None:
    is_finalized = broker.image.features.level(STREAMS_VERSION) >= 1
    if not is_finalized or "streams" not in broker.config.group_coordinator.rebalance_protocols:
        raise UnsupportedVersion("The streams group protocol is not enabled: streams.version is 0.")


@handles(
    88,
    needs=[
        Need(Operation.READ, ResourceType.GROUP),
        Need(Operation.DESCRIBE, ResourceType.TOPIC, when="for every topic of the topology that a member sends"),
        Need(
            Operation.CREATE,
            ResourceType.CLUSTER,
            denied="status MISSING_INTERNAL_TOPICS in the response, and nothing is created",
        )
        | Need(Operation.CREATE, ResourceType.TOPIC, when="for every internal topic that is missing"),
    ],
)
def handle_streams_group_heartbeat(call: Call, request: StreamsGroupHeartbeatRequest) -> None:
    broker = call.broker
    _check_enabled(broker)
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    if request.topology is not None:
        _check_topics(call, request.topology)
    client = Client(client_id=call.client_id or "", host=call.client_host)

    def answer(answered: HeartbeatAnswer) -> None:
        if answered.missing:
            _create_topics(call, request.group_id, answered)
        call.reply(answered.response)

    broker.groups.write(
        request.group_id,
        lambda shard: shard.streams_heartbeat(request, client, broker.now_ms()),
        ResponseCallback(answer, call.fail),
    )


def _check_topics(call: Call, topology: Topology) -> None:
    names = named_topics(topology.subtopologies)
    internal = [name for name in names if is_internal_topic(name)]
    if internal:
        raise StreamsInvalidTopology(
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited."
        )
    for name in names:
        try:
            check_topic_name(name)
        except InvalidTopic as error:
            raise StreamsInvalidTopology(f"The topology has an invalid topic: {error}.") from error
    if not may_describe_all(call, names):
        raise TopicAuthorizationFailed


def _create_topics(call: Call, group_id: str, answered: HeartbeatAnswer) -> None:
    """Create the missing internal topics in the background, or add the reason why not to the response."""
    broker, missing = call.broker, answered.missing
    if not call.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True):
        denied = [name for name in missing if not call.may(Operation.CREATE, ResourceType.TOPIC, name)]
        if denied:
            _add_detail(answered, f"Unauthorized to CREATE on topics {_listed(denied, NAMES_SHOWN_MAX)}.")
            return
    made_as = {
        name: InternalTopic(
            partition_count=topic.partition_count, replication_factor=topic.replication_factor, options=topic.options
        )
        for name, topic in missing.items()
    }
    # After a failure, wait as long as Kafka does, so that an application does not ask the controller every second.
    interval_ms = broker.groups.cluster.streams_settings_of(group_id).heartbeat_interval_ms
    failed = broker.auto_creation.refusals(missing)
    broker.auto_creation.request(missing, made_as, pause_s=2 * interval_ms / 1000)
    if failed:
        reasons = [f"{name} ({reason})" for name, reason in failed.items()]
        _add_detail(answered, f"Creation failed: {_listed(reasons, FAILURES_SHOWN_MAX)}.")


def _listed(texts: list[str], shown_max: int) -> str:
    more = f" and {len(texts) - shown_max} more" if len(texts) > shown_max else ""
    return ", ".join(texts[:shown_max]) + more


def _add_detail(answered: HeartbeatAnswer, text: str) -> None:
    for status in answered.response.status or ():
        if status.status_code == StatusCode.MISSING_INTERNAL_TOPICS:
            status.status_detail += f"; {text}"


def describe_error_reply(
    request: StreamsGroupDescribeRequest | None, version: int, error: ApiError
) -> StreamsGroupDescribeResponse | None:
    if request is None:
        return None
    return StreamsGroupDescribeResponse(groups=[_described_error(group_id, error) for group_id in request.group_ids])


def _described_error(group_id: str, error: ApiError) -> DescribedStreamsGroup:
    return DescribedStreamsGroup(group_id=group_id, error_code=error.code, error_message=str(error) or None)


@handles(
    89,
    needs=[
        Need(Operation.DESCRIBE, ResourceType.GROUP),
        Need(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            when="for every topic of the group's topology",
            denied="TOPIC_AUTHORIZATION_FAILED for the whole group",
        ),
    ],
    error_reply=describe_error_reply,
)
def handle_streams_group_describe(call: Call, request: StreamsGroupDescribeRequest) -> None:
    _check_enabled(call.broker)

    def finish(described: list[DescribedStreamsGroup]) -> None:
        shown = [_refused_for_topics(call, group) or group for group in described]
        for group in shown:
            if request.include_authorized_operations and group.error_code == 0:
                group.authorized_operations = call.authorized_operations(ResourceType.GROUP, group.group_id)
        call.reply(StreamsGroupDescribeResponse(groups=shown))

    gather: ResultCollector[DescribedStreamsGroup] = ResultCollector(finish)
    for group_id in dict.fromkeys(request.group_ids):
        _ask_description(call, group_id, gather)
    gather.close()


def _refused_for_topics(call: Call, group: DescribedStreamsGroup) -> DescribedStreamsGroup | None:
    """The result for a group with topics that the client may not describe."""
    if group.topology is None or may_describe_all(call, named_topics(group.topology.subtopologies or ())):
        return None
    return _described_error(group.group_id, TopicAuthorizationFailed(UNDESCRIBED_TOPICS))


def _ask_description(call: Call, group_id: str, gather: ResultCollector[DescribedStreamsGroup]) -> None:
    reply = gather.ask(lambda error: _described_error(group_id, error))
    if call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        call.broker.groups.read(group_id, lambda shard, at: shard.streams.describe(group_id, at), reply)
    else:
        reply.fail(GroupAuthorizationFailed())
