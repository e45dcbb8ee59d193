"""What share coordinators serve to other brokers: Initialize, Read, Write, Delete and ReadSummary of share group state.

Behaviour
- Only brokers ask: CLUSTER_AUTHORIZATION_FAILED for everybody else.
- Each share partition has its own outcome. Only what is to be deleted may be of a topic that does not exist.
Versions
- Write 1 and ReadSummary 1: how many deliveries are complete.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millbeck.coordinator.runtime.result import Reply
from millbeck.coordinator.share.shard import ShareKey, Written
from millbeck.coordinator.share.states import StateBatch
from millbeck.kernel.errors import ApiError, ClusterAuthorizationFailed, InvalidRequest, UnknownTopicOrPartition
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import ErrorReply, handles
from millbeck.server.handlers.gather import Gather
from millbeck.server.handlers.share_fetch import check_share_groups_are_on
from millbeck.server.share import errands
from millbeck.server.share.errands import Errand, Kind, Stored
from millbeck.wire.messages import (
    delete_share_group_state,
    initialize_share_group_state,
    read_share_group_state,
    read_share_group_state_summary,
    write_share_group_state,
)

Shape = Callable[[int, Any], Any]
"""From a partition and what was found to its result."""


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
    kind: Kind,
    argument: Callable[[Any], Any],
    topic_result: type[Any],
    result: type[Any],
    shape: Shape,
) -> None:
    check_share_groups_are_on(call)
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    if not request.group_id:
        raise InvalidRequest("a group must be named")

    def finish(found: list[tuple[bytes, Any]]) -> None:
        topics: dict[bytes, list[Any]] = {}
        for topic_id, each in found:
            topics.setdefault(topic_id, []).append(each)
        call.reply(kind.response([topic_result(topic_id, results) for topic_id, results in topics.items()]))

    call.hold()
    gather: Gather[tuple[bytes, Any]] = Gather(finish)
    for topic in request.topics:
        for each in topic.partitions:
            _ask(call, request.group_id, topic.topic_id, each, kind, argument(each), result, shape, gather)
    gather.close()


def _ask(
    call: Call,
    group_id: str,
    topic_id: bytes,
    asked: Any,
    kind: Kind,
    argument: Any,
    result: type[Any],
    shape: Shape,
    gather: Gather[tuple[bytes, Any]],
) -> None:
    broker = call.broker
    place = gather.ask(lambda error: (topic_id, result(asked.partition, error.code, str(error) or None)))
    topic = broker.image.topics.with_id(topic_id)
    if kind is not errands.DELETE and (topic is None or asked.partition not in topic.partitions):
        place.fail(UnknownTopicOrPartition())
        return
    reply: Reply[Any] = Reply(lambda found: place.reply((topic_id, shape(asked.partition, found))), place.fail)
    key = ShareKey(group_id, topic_id, asked.partition)
    kind.run_here(broker.share_state, Errand(kind, key, argument, reply), reply, broker.now_ms())


@handles(
    83,
    error_reply=_error_reply(
        initialize_share_group_state.InitializeShareGroupStateResponse,
        initialize_share_group_state.InitializeStateResult,
        initialize_share_group_state.InitializeShareGroupStatePartitionResult,
    ),
)
def handle_initialize_share_group_state(
    call: Call, request: initialize_share_group_state.InitializeShareGroupStateRequest
) -> None:
    messages = initialize_share_group_state
    result = messages.InitializeShareGroupStatePartitionResult
    _serve(
        call,
        request,
        errands.INITIALIZE,
        lambda asked: (asked.state_epoch, asked.start_offset),
        messages.InitializeStateResult,
        result,
        lambda partition, _: result(partition),
    )


@handles(
    84,
    error_reply=_error_reply(
        read_share_group_state.ReadShareGroupStateResponse,
        read_share_group_state.ReadStateResult,
        read_share_group_state.ReadShareGroupStatePartitionResult,
    ),
)
def handle_read_share_group_state(call: Call, request: read_share_group_state.ReadShareGroupStateRequest) -> None:
    messages = read_share_group_state
    result = messages.ReadShareGroupStatePartitionResult

    def shape(partition: int, stored: Stored) -> Any:
        batches = [messages.StateBatch(*batch) for batch in stored.batches]
        return result(partition, 0, None, stored.state_epoch, stored.start_offset, batches)

    _serve(call, request, errands.READ, lambda asked: asked.leader_epoch, messages.ReadStateResult, result, shape)


@handles(
    85,
    error_reply=_error_reply(
        write_share_group_state.WriteShareGroupStateResponse,
        write_share_group_state.WriteStateResult,
        write_share_group_state.WriteShareGroupStatePartitionResult,
    ),
)
def handle_write_share_group_state(call: Call, request: write_share_group_state.WriteShareGroupStateRequest) -> None:
    messages = write_share_group_state
    result = messages.WriteShareGroupStatePartitionResult

    def written(asked: write_share_group_state.WriteShareGroupStatePartition) -> Written:
        return Written(
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
        errands.WRITE,
        written,
        messages.WriteStateResult,
        result,
        lambda partition, _: result(partition),
    )


@handles(
    86,
    error_reply=_error_reply(
        delete_share_group_state.DeleteShareGroupStateResponse,
        delete_share_group_state.DeleteStateResult,
        delete_share_group_state.DeleteShareGroupStatePartitionResult,
    ),
)
def handle_delete_share_group_state(call: Call, request: delete_share_group_state.DeleteShareGroupStateRequest) -> None:
    messages = delete_share_group_state
    result = messages.DeleteShareGroupStatePartitionResult
    _serve(
        call,
        request,
        errands.DELETE,
        lambda _: None,
        messages.DeleteStateResult,
        result,
        lambda partition, _: result(partition),
    )


@handles(
    87,
    error_reply=_error_reply(
        read_share_group_state_summary.ReadShareGroupStateSummaryResponse,
        read_share_group_state_summary.ReadStateSummaryResult,
        read_share_group_state_summary.ReadShareGroupStateSummaryPartitionResult,
    ),
)
def handle_read_share_group_state_summary(
    call: Call, request: read_share_group_state_summary.ReadShareGroupStateSummaryRequest
) -> None:
    messages = read_share_group_state_summary
    result = messages.ReadShareGroupStateSummaryPartitionResult

    def shape(partition: int, stored: Stored) -> Any:
        return result(
            partition,
            0,
            None,
            stored.state_epoch,
            stored.leader_epoch,
            stored.start_offset,
            stored.delivery_complete_count,
        )

    _serve(call, request, errands.SUMMARY, lambda _: None, messages.ReadStateSummaryResult, result, shape)
