"""The share coordinator's APIs for other brokers: Initialize, Read, Write, Delete and ReadSummary of share group state.

Behaviour
- For brokers only: CLUSTER_AUTHORIZATION_FAILED for other clients.
- Each share partition has its own result. The topic must exist, except for a delete.
Versions
- Write 1 and ReadSummary 1: the number of completed deliveries.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey, StateWrite
from millbeck.coordinator.share.states import StateBatch
from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, InvalidRequest, UnknownTopicOrPartition
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.call import Call
from millbeck.server.network.route import ErrorReply, Need, handles
from millbeck.server.requests.handlers.share_fetch import check_share_groups_are_on
from millbeck.server.share import persister_requests
from millbeck.server.share.persister_requests import PersistedState, PersisterOperation, PersisterRequest
from millbeck.wire.messages import share_state as share_state_messages

Shape = Callable[[int, Any], Any]
"""Builds the result of one partition from its number and the coordinator's answer."""


def _error_reply(response: type[Any], topic_result: type[Any], result: type[Any]) -> ErrorReply:
    def reply(request: Any, version: int, error: ApiError) -> Any:
        if request is None:
            return None
        return response(
            [
                topic_result(
                    topic.topic_id,
                    [result(each.partition, error.code, str(error) or None) for each in topic.partitions],
                )
                for topic in request.topics
            ]
        )

    return reply


def _serve(
    call: Call,
    request: Any,
    kind: PersisterOperation,
    argument: Callable[[Any], Any],
    topic_result: type[Any],
    result: type[Any],
    shape: Shape,
) -> None:
    check_share_groups_are_on(call)
    if not call.is_cluster_action_allowed():
        raise ClusterAuthorizationFailed
    if not request.group_id:
        raise InvalidRequest("group id must be set")

    def finish(found: list[tuple[bytes, Any]]) -> None:
        topics: dict[bytes, list[Any]] = {}
        for topic_id, each in found:
            topics.setdefault(topic_id, []).append(each)
        call.reply(kind.response([topic_result(topic_id, results) for topic_id, results in topics.items()]))

    call.hold()
    gather: ResultCollector[tuple[bytes, Any]] = ResultCollector(finish)
    for topic in request.topics:
        for each in topic.partitions:
            _ask(call, request.group_id, topic.topic_id, each, kind, argument(each), result, shape, gather)
    gather.close()


def _ask(
    call: Call,
    group_id: str,
    topic_id: bytes,
    asked: Any,
    kind: PersisterOperation,
    argument: Any,
    result: type[Any],
    shape: Shape,
    gather: ResultCollector[tuple[bytes, Any]],
) -> None:
    broker = call.broker
    place = gather.ask(lambda error: (topic_id, result(asked.partition, error.code, str(error) or None)))
    topic = broker.image.topics.with_id(topic_id)
    if kind is not persister_requests.DELETE and (topic is None or asked.partition not in topic.partitions):
        place.fail(UnknownTopicOrPartition())
        return
    reply: ResponseCallback[Any] = ResponseCallback(
        lambda found: place.reply((topic_id, shape(asked.partition, found))), place.fail
    )
    key = ShareKey(group_id, topic_id, asked.partition)
    kind.run_here(broker.share_state, PersisterRequest(kind, key, argument, reply), reply, broker.now_ms())


@handles(
    83,
    needs=[
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="on the inter-broker listener only",
            denied="CLUSTER_AUTHORIZATION_FAILED in every partition",
        )
    ],
    error_reply=_error_reply(
        share_state_messages.InitializeShareGroupStateResponse,
        share_state_messages.InitializeStateResult,
        share_state_messages.InitializeShareGroupStatePartitionResult,
    ),
)
def handle_initialize_share_group_state(
    call: Call, request: share_state_messages.InitializeShareGroupStateRequest
) -> None:
    messages = share_state_messages
    result = messages.InitializeShareGroupStatePartitionResult
    _serve(
        call,
        request,
        persister_requests.INITIALIZE,
        lambda asked: (asked.state_epoch, asked.start_offset),
        messages.InitializeStateResult,
        result,
        lambda partition, _: result(partition),
    )


@handles(
    84,
    needs=[
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="on the inter-broker listener only",
            denied="CLUSTER_AUTHORIZATION_FAILED in every partition",
        )
    ],
    error_reply=_error_reply(
        share_state_messages.ReadShareGroupStateResponse,
        share_state_messages.ReadStateResult,
        share_state_messages.ReadShareGroupStatePartitionResult,
    ),
)
def handle_read_share_group_state(call: Call, request: share_state_messages.ReadShareGroupStateRequest) -> None:
    messages = share_state_messages
    result = messages.ReadShareGroupStatePartitionResult

    def shape(partition: int, stored: PersistedState) -> Any:
        batches = [messages.StateBatch(*batch) for batch in stored.batches]
        return result(partition, 0, None, stored.state_epoch, stored.start_offset, batches)

    _serve(
        call,
        request,
        persister_requests.READ,
        lambda asked: asked.leader_epoch,
        messages.ReadStateResult,
        result,
        shape,
    )


@handles(
    85,
    needs=[
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="on the inter-broker listener only",
            denied="CLUSTER_AUTHORIZATION_FAILED in every partition",
        )
    ],
    error_reply=_error_reply(
        share_state_messages.WriteShareGroupStateResponse,
        share_state_messages.WriteStateResult,
        share_state_messages.WriteShareGroupStatePartitionResult,
    ),
)
def handle_write_share_group_state(call: Call, request: share_state_messages.WriteShareGroupStateRequest) -> None:
    messages = share_state_messages
    result = messages.WriteShareGroupStatePartitionResult

    def written(asked: share_state_messages.WriteShareGroupStatePartition) -> StateWrite:
        return StateWrite(
            state_epoch=asked.state_epoch,
            leader_epoch=asked.leader_epoch,
            start_offset=asked.start_offset,
            delivery_complete_count=asked.delivery_complete_count,
            batches=[
                StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count)
                for each in asked.state_batches
            ],
        )

    _serve(
        call,
        request,
        persister_requests.WRITE,
        written,
        messages.WriteStateResult,
        result,
        lambda partition, _: result(partition),
    )


@handles(
    86,
    needs=[
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="on the inter-broker listener only",
            denied="CLUSTER_AUTHORIZATION_FAILED in every partition",
        )
    ],
    error_reply=_error_reply(
        share_state_messages.DeleteShareGroupStateResponse,
        share_state_messages.DeleteStateResult,
        share_state_messages.DeleteShareGroupStatePartitionResult,
    ),
)
def handle_delete_share_group_state(call: Call, request: share_state_messages.DeleteShareGroupStateRequest) -> None:
    messages = share_state_messages
    result = messages.DeleteShareGroupStatePartitionResult
    _serve(
        call,
        request,
        persister_requests.DELETE,
        lambda _: None,
        messages.DeleteStateResult,
        result,
        lambda partition, _: result(partition),
    )


@handles(
    87,
    needs=[
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="on the inter-broker listener only",
            denied="CLUSTER_AUTHORIZATION_FAILED in every partition",
        )
    ],
    error_reply=_error_reply(
        share_state_messages.ReadShareGroupStateSummaryResponse,
        share_state_messages.ReadStateSummaryResult,
        share_state_messages.ReadShareGroupStateSummaryPartitionResult,
    ),
)
def handle_read_share_group_state_summary(
    call: Call, request: share_state_messages.ReadShareGroupStateSummaryRequest
) -> None:
    messages = share_state_messages
    result = messages.ReadShareGroupStateSummaryPartitionResult

    def shape(partition: int, stored: PersistedState) -> Any:
        return result(
            partition,
            0,
            None,
            stored.state_epoch,
            stored.leader_epoch,
            stored.start_offset,
            stored.delivery_complete_count,
        )

    _serve(call, request, persister_requests.SUMMARY, lambda _: None, messages.ReadStateSummaryResult, result, shape)
