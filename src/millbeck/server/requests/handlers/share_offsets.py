"""DescribeShareGroupOffsets, AlterShareGroupOffsets, DeleteShareGroupOffsets: start offsets of share groups.

Behaviour
- Describe: the start offset of each share partition, -1 where the group has none yet, and the lag (the end of the
  partition minus the start offset, minus the records completed after it). Without topics: all share partitions with a
  state. As in Kafka, a group or topic that does not exist is one without state.
- Alter and Delete: only while the group has no members, NON_EMPTY_GROUP otherwise. The new offset starts a new state
  epoch, so that earlier writes cannot take effect. Alter creates a missing group.
Versions
- Describe 1: the lag.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from millbeck.coordinator.group.share.groups import StartOffset, StateInitialization
from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.coordinator.share.shard import ShareKey
from millbeck.kernel.errors import (
    ApiError,
    GroupAuthorizationFailed,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.audited import audited
from millbeck.server.requests.handlers.share_fetch import check_share_groups_are_on
from millbeck.server.share.persister_requests import PersistedState
from millbeck.wire.messages.log_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from millbeck.wire.messages.share_groups import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsRequestTopic,
    AlterShareGroupOffsetsResponse,
    AlterShareGroupOffsetsResponsePartition,
    AlterShareGroupOffsetsResponseTopic,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)

if TYPE_CHECKING:
    from millbeck.server.broker import Broker
    from millbeck.server.share.sessions import Place

T = TypeVar("T")

LATEST: Final = -1
A_CONSUMER: Final = -1
UNKNOWN: Final = -1
PURPOSE: Final = "share-lag"
ANSWER_SECONDS_MAX: Final = 10.0


async def answer_of(ask: Callable[[ResponseCallback[T]], None]) -> T:
    """Await the result passed to a response callback; raises the error it fails with."""
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    ask(
        ResponseCallback(
            lambda value: None if future.done() else future.set_result(value),
            lambda error: None if future.done() else future.set_exception(error),
        )
    )
    return await future


# DescribeShareGroupOffsets


def describe_error_reply(
    request: DescribeShareGroupOffsetsRequest | None, version: int, error: ApiError
) -> DescribeShareGroupOffsetsResponse | None:
    if request is None:
        return None
    return DescribeShareGroupOffsetsResponse(groups=[_refused_group(each.group_id, error) for each in request.groups])


def _refused_group(group_id: str, error: ApiError) -> DescribeShareGroupOffsetsResponseGroup:
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id, error_code=error.code, error_message=str(error) or None
    )


@handles(
    90,
    needs=[Need(Operation.DESCRIBE, ResourceType.GROUP), Need(Operation.DESCRIBE, ResourceType.TOPIC)],
    error_reply=describe_error_reply,
)
async def handle_describe_share_group_offsets(
    call: Call, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    check_share_groups_are_on(call)
    groups = []
    for group in request.groups:
        try:
            groups.append(await _describe(call, group))
        except ApiError as error:
            groups.append(_refused_group(group.group_id, error))
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _describe(call: Call, asked: DescribeShareGroupOffsetsRequestGroup) -> DescribeShareGroupOffsetsResponseGroup:
    broker, group_id = call.broker, asked.group_id
    if not call.may(Operation.DESCRIBE, ResourceType.GROUP, group_id):
        raise GroupAuthorizationFailed
    known: dict[bytes, tuple[int, ...]] = await answer_of(
        lambda reply: broker.groups.read(group_id, lambda shard, at: shard.share.places(group_id, at), reply)
    )
    wanted: dict[str, list[int]] = {}
    if asked.topics is None:
        for topic_id, indexes in known.items():
            topic = broker.image.topics.with_id(topic_id)
            if topic is not None and call.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
                wanted[topic.name] = list(indexes)
    else:
        wanted = {topic.topic_name: topic.partitions for topic in asked.topics}
    return DescribeShareGroupOffsetsResponseGroup(
        group_id=group_id,
        topics=[await _describe_topic(call, group_id, name, indexes) for name, indexes in sorted(wanted.items())],
    )


async def _describe_topic(
    call: Call, group_id: str, name: str, indexes: list[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    broker = call.broker
    result = DescribeShareGroupOffsetsResponsePartition
    topic = broker.image.topics.named(name)
    if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
        refusal = TopicAuthorizationFailed()
        refused = [result(index, UNKNOWN, 0, UNKNOWN, refusal.code, str(refusal) or None) for index in indexes]
        return DescribeShareGroupOffsetsResponseTopic(name, ZERO_UUID, refused)
    if topic is None:
        without_state = [result(index, UNKNOWN, 0, UNKNOWN) for index in indexes]
        return DescribeShareGroupOffsetsResponseTopic(name, ZERO_UUID, without_state)
    partitions = []
    # One after the other they would take as many timeouts as there are partitions without a coordinator.
    states, ends = await asyncio.gather(
        _states_of(broker, [ShareKey(group_id, topic.topic_id, index) for index in indexes]),
        _ends_of(call, name, indexes if call.version >= 1 else []),
    )
    for index, stored in zip(indexes, states, strict=True):
        if isinstance(stored, ApiError):
            partitions.append(result(index, UNKNOWN, 0, UNKNOWN, stored.code, str(stored) or None))
            continue
        lag = UNKNOWN
        if stored.start_offset >= 0 and index in ends:
            lag = max(0, ends[index] - stored.start_offset - max(0, stored.delivery_complete_count))
        partitions.append(result(index, stored.start_offset, max(0, stored.leader_epoch), lag))
    return DescribeShareGroupOffsetsResponseTopic(name, topic.topic_id, partitions)


async def _states_of(broker: Broker, keys: Sequence[ShareKey]) -> list[PersistedState | ApiError]:
    """The stored states of these share partitions, in their order, or the errors of unknown ones."""
    future: asyncio.Future[list[PersistedState | ApiError]] = asyncio.get_running_loop().create_future()
    gather: ResultCollector[PersistedState | ApiError] = ResultCollector(
        lambda found: None if future.done() else future.set_result(found)
    )
    for key in keys:
        reply = gather.ask(lambda error: error)
        broker.shares.persister.summary(key, ResponseCallback(reply.reply, reply.fail))
    gather.close()
    return await future


async def _ends_of(call: Call, name: str, indexes: list[int]) -> dict[int, int]:
    """The end offsets of these partitions; those whose leader does not answer are left out."""
    broker = call.broker
    topic = broker.image.topics.named(name)
    ends: dict[int, int] = {}
    elsewhere: dict[int, list[int]] = {}
    for index in indexes:
        registration = None if topic is None else topic.partitions.get(index)
        if registration is None:
            continue
        if registration.leader == broker.node_id:
            try:
                ends[index] = broker.topics.led_partition(name, index).high_watermark
            except ApiError:
                continue
        elif registration.leader >= 0:
            elsewhere.setdefault(registration.leader, []).append(index)
    found = await asyncio.gather(*(_ends_from(broker, leader, name, there) for leader, there in elsewhere.items()))
    for each in found:
        ends |= each
    return ends


async def _ends_from(broker: Broker, leader: int, name: str, indexes: list[int]) -> dict[int, int]:
    asked = [ListOffsetsPartition(index, timestamp=LATEST) for index in indexes]
    request = ListOffsetsRequest(replica_id=A_CONSUMER, topics=[ListOffsetsTopic(name, asked)])
    try:
        answer = await broker.peers.request(leader, PURPOSE, request, ListOffsetsResponse, timeout_s=ANSWER_SECONDS_MAX)
    except ApiError:
        return {}
    partitions = [each for topic in answer.topics for each in topic.partitions]
    return {each.partition_index: each.offset for each in partitions if not each.error_code}


# AlterShareGroupOffsets


@handles(91, needs=[Need(Operation.READ, ResourceType.GROUP), Need(Operation.READ, ResourceType.TOPIC)])
async def handle_alter_share_group_offsets(
    call: Call, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    check_share_groups_are_on(call)
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    broker, group_id = call.broker, request.group_id
    refusals: dict[tuple[str, int], ApiError] = {}
    starts: list[StartOffset] = []
    for topic in request.topics:
        starts += _starts_in(call, topic, refusals)
    outcomes: dict[Place, ApiError | None] = {}
    if starts:
        beginning: StateInitialization = await answer_of(
            lambda reply: broker.groups.write(group_id, lambda shard: shard.set_share_starts(group_id, starts), reply)
        )
        outcomes = await _outcomes(
            lambda finish: broker.state_initializer.begin(group_id, beginning.state_epoch, beginning.beginnings, finish)
        )
    response = AlterShareGroupOffsetsResponse()
    for topic in request.topics:
        image = broker.image.topics.named(topic.topic_name)
        topic_id = ZERO_UUID if image is None else image.topic_id
        results = []
        for each in topic.partitions:
            error = refusals.get((topic.topic_name, each.partition_index)) or outcomes.get(
                (topic_id, each.partition_index)
            )
            code, text = (0, None) if error is None else (error.code, str(error) or None)
            if error is None:
                name = f"{group_id}:{topic.topic_name}-{each.partition_index}"
                audited(call, "offset", name, after={"start_offset": each.start_offset})
            results.append(AlterShareGroupOffsetsResponsePartition(each.partition_index, code, text))
        response.responses.append(AlterShareGroupOffsetsResponseTopic(topic.topic_name, topic_id, results))
    return response


def _starts_in(
    call: Call, topic: AlterShareGroupOffsetsRequestTopic, refusals: dict[tuple[str, int], ApiError]
) -> list[StartOffset]:
    image = call.broker.image.topics.named(topic.topic_name)
    may_read = call.may(Operation.READ, ResourceType.TOPIC, topic.topic_name)
    found = []
    for each in topic.partitions:
        if not may_read:
            refusals[topic.topic_name, each.partition_index] = TopicAuthorizationFailed()
        elif image is None or each.partition_index not in image.partitions:
            refusals[topic.topic_name, each.partition_index] = UnknownTopicOrPartition()
        else:
            found.append(StartOffset(image.topic_id, topic.topic_name, each.partition_index, each.start_offset))
    return found


async def _outcomes(ask: Callable[[Any], None]) -> dict[Place, ApiError | None]:
    future: asyncio.Future[dict[Place, ApiError | None]] = asyncio.get_running_loop().create_future()
    ask(lambda found: None if future.done() else future.set_result(found))
    return await future


# DeleteShareGroupOffsets


@handles(92, needs=[Need(Operation.DELETE, ResourceType.GROUP), Need(Operation.READ, ResourceType.TOPIC)])
async def handle_delete_share_group_offsets(
    call: Call, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    check_share_groups_are_on(call)
    if not call.may(Operation.DELETE, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    broker, group_id = call.broker, request.group_id
    refusals: dict[str, ApiError] = {}
    names: dict[bytes, str] = {}
    for topic in request.topics:
        image = broker.image.topics.named(topic.topic_name)
        if not call.may(Operation.READ, ResourceType.TOPIC, topic.topic_name):
            refusals[topic.topic_name] = TopicAuthorizationFailed()
        elif image is None:
            refusals[topic.topic_name] = UnknownTopicOrPartition()
        else:
            names[image.topic_id] = topic.topic_name
    places: list[Place] = await answer_of(
        lambda reply: broker.groups.write(group_id, lambda shard: shard.share.begin_deletion(group_id, names), reply)
    )
    outcomes = await _outcomes(lambda finish: broker.state_initializer.delete(group_id, places, finish))
    failed = {topic_id: error for (topic_id, _), error in outcomes.items() if error is not None}
    gone = [topic_id for topic_id in names if topic_id not in failed]
    is_recorded: bool = await answer_of(
        lambda reply: broker.groups.write(group_id, lambda shard: shard.share.end_deletion(group_id, gone), reply)
    )
    assert is_recorded
    for topic_id in gone:
        audited(call, "offset", f"{group_id}:{names[topic_id]}", before="a start offset")
    ids = {name: topic_id for topic_id, name in names.items()}
    response = DeleteShareGroupOffsetsResponse()
    for topic in request.topics:
        name = topic.topic_name
        topic_id = ids.get(name, ZERO_UUID)
        error = refusals.get(name) or failed.get(topic_id)
        code, text = (0, None) if error is None else (error.code, str(error) or None)
        response.responses.append(DeleteShareGroupOffsetsResponseTopic(name, topic_id, code, text))
    return response
