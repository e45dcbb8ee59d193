"""OffsetCommit, OffsetFetch, OffsetDelete: the committed offsets of groups.

Behaviour
- A commit to a topic or partition that does not exist is refused for that partition; the others are written in one
  batch.
- OffsetFetch of an unknown group or of a partition without a commit returns offset -1 and no error.
- A group, topic or partition that is named twice is answered once.
- ``require_stable`` waits for pending commits and answers UNSTABLE_OFFSET_COMMIT where a transaction is open.
Versions
- OffsetCommit 2-4: a retention time per commit. 6: leader epochs. 7: static members. 9: GROUP_ID_NOT_FOUND. 10: topic
  ids.
- OffsetFetch 1: errors per partition only. 2: null topics mean all. 7: ``require_stable``. 8: several groups. 10: topic
  ids.
"""

from __future__ import annotations

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    NotCoordinator,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.loop.gather import ResultCollector
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.server.requests.audited import audited
from millbeck.wire.messages.group_offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

COMMIT_TOPIC_ID_VERSION = 10
FETCH_TOPIC_ID_VERSION = 10
FETCH_GROUPS_VERSION = 8
FETCH_GROUP_ERROR_VERSION = 2

# OffsetCommit


def commit_error_reply(
    request: OffsetCommitRequest | None, version: int, error: ApiError
) -> OffsetCommitResponse | None:
    if request is None:
        return None
    return OffsetCommitResponse(topics=[_commit_refused(topic, error) for topic in request.topics])


def _commit_refused(topic: OffsetCommitRequestTopic, error: ApiError) -> OffsetCommitResponseTopic:
    partitions = [OffsetCommitResponsePartition(one.partition_index, error.code) for one in topic.partitions]
    return OffsetCommitResponseTopic(topic.name, topic.topic_id, partitions)


@handles(
    8,
    needs=[Need(Operation.READ, ResourceType.GROUP), Need(Operation.READ, ResourceType.TOPIC)],
    error_reply=commit_error_reply,
)
def handle_offset_commit(call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse | None:
    broker = call.broker
    if not call.may(Operation.READ, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    accepted: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in request.topics:
        try:
            _resolve_commit(call, topic)
        except ApiError as error:
            refused.append(_commit_refused(topic, error))
        else:
            _split_commit(call, topic, accepted, refused)
    if not accepted:
        return OffsetCommitResponse(topics=refused)

    def finish(response: OffsetCommitResponse) -> None:
        response.topics = _merged(response.topics, refused)
        call.reply(response)

    request.topics, asked = accepted, request.topics

    def fail(error: ApiError) -> None:
        request.topics = asked
        call.fail(error)

    broker.groups.write(
        request.group_id,
        lambda shard: shard.commit_offsets(request, call.version, broker.now_ms()),
        ResponseCallback(finish, fail),
    )
    return None


def _resolve_commit(call: Call, topic: OffsetCommitRequestTopic) -> None:
    """Set both name and id of the topic, after authorizing the client to READ it."""
    topics = call.broker.image.topics
    if call.version >= COMMIT_TOPIC_ID_VERSION:
        found = topics.with_id(topic.topic_id)
        if found is None:
            raise UnknownTopicId
        topic.name = found.name
    if not call.may(Operation.READ, ResourceType.TOPIC, topic.name):
        raise TopicAuthorizationFailed
    named = topics.named(topic.name)
    if named is None:
        raise UnknownTopicOrPartition
    topic.topic_id = named.topic_id


def _split_commit(
    call: Call,
    topic: OffsetCommitRequestTopic,
    accepted: list[OffsetCommitRequestTopic],
    refused: list[OffsetCommitResponseTopic],
) -> None:
    image = call.broker.image.topics.named(topic.name)
    known: list[OffsetCommitRequestPartition] = []
    unknown: list[OffsetCommitRequestPartition] = []
    for partition in topic.partitions:
        is_known = image is not None and partition.partition_index in image.partitions
        (known if is_known else unknown).append(partition)
    if known:
        accepted.append(OffsetCommitRequestTopic(topic.name, topic.topic_id, known))
    if unknown:
        missing = OffsetCommitRequestTopic(topic.name, topic.topic_id, unknown)
        refused.append(_commit_refused(missing, UnknownTopicOrPartition()))


def _merged(
    answered: list[OffsetCommitResponseTopic], refused: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """Merge results per topic, including partitions that were refused before the coordinator was called."""
    by_topic = {(topic.name, topic.topic_id): topic for topic in answered}
    for topic in refused:
        found = by_topic.get((topic.name, topic.topic_id))
        if found is None:
            answered.append(topic)
        else:
            found.partitions += topic.partitions
    return answered


# OffsetFetch


def fetch_error_reply(request: OffsetFetchRequest | None, version: int, error: ApiError) -> OffsetFetchResponse | None:
    if request is None:
        return None
    groups = [_fetch_refused(group, version, error) for group in _groups_of(request, version)]
    return _shape_fetch(groups, version)


def _groups_of(request: OffsetFetchRequest, version: int) -> list[OffsetFetchRequestGroup]:
    """The requested groups, each once; older versions name one group."""
    if version >= FETCH_GROUPS_VERSION:
        groups: dict[str, OffsetFetchRequestGroup] = {}
        for group in request.groups:
            known = groups.setdefault(group.group_id, group)
            if group.topics is None or known.topics is None:
                known.topics = None
            elif known is not group:
                known.topics = known.topics + group.topics
        for group in groups.values():
            group.topics = _each_once(group.topics)
        return list(groups.values())
    topics = None
    if request.topics is not None:
        topics = [OffsetFetchRequestTopics(topic.name, ZERO_UUID, topic.partition_indexes) for topic in request.topics]
    return [OffsetFetchRequestGroup(group_id=request.group_id, topics=_each_once(topics))]


def _each_once(topics: list[OffsetFetchRequestTopics] | None) -> list[OffsetFetchRequestTopics] | None:
    """Each partition once: otherwise every repetition, four bytes of the request, would add 4 KiB of metadata to the
    response.
    """
    if topics is None:
        return None
    indexes: dict[tuple[str, bytes], dict[int, None]] = {}
    for topic in topics:
        indexes.setdefault((topic.name, topic.topic_id), {}).update(dict.fromkeys(topic.partition_indexes))
    return [OffsetFetchRequestTopics(name, topic_id, list(each)) for (name, topic_id), each in indexes.items()]


def _fetch_refused(group: OffsetFetchRequestGroup, version: int, error: ApiError) -> OffsetFetchResponseGroup:
    if version >= FETCH_GROUP_ERROR_VERSION:
        return OffsetFetchResponseGroup(group.group_id, [], error.code)
    return OffsetFetchResponseGroup(group.group_id, [_topic_refused(topic, error) for topic in group.topics or ()])


def _topic_refused(topic: OffsetFetchRequestTopics, error: ApiError) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic.name,
        topic.topic_id,
        [OffsetFetchResponsePartitions(index, -1, -1, "", error.code) for index in topic.partition_indexes],
    )


def _shape_fetch(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= FETCH_GROUPS_VERSION:
        return OffsetFetchResponse(groups=groups)
    topics = [
        OffsetFetchResponseTopic(
            topic.name,
            [
                OffsetFetchResponsePartition(
                    one.partition_index, one.committed_offset, one.committed_leader_epoch, one.metadata, one.error_code
                )
                for one in topic.partitions
            ],
        )
        for topic in groups[0].topics
    ]
    return OffsetFetchResponse(topics=topics, error_code=groups[0].error_code)


@handles(
    9,
    needs=[
        Need(Operation.DESCRIBE, ResourceType.GROUP),
        Need(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            denied="TOPIC_AUTHORIZATION_FAILED; topics that were not named are left out",
        ),
    ],
    error_reply=fetch_error_reply,
)
def handle_offset_fetch(call: Call, request: OffsetFetchRequest) -> None:
    gather: ResultCollector[OffsetFetchResponseGroup] = ResultCollector(
        lambda groups: call.reply(_shape_fetch(groups, call.version))
    )
    for group in _groups_of(request, call.version):
        _ask_offsets(call, group, request.require_stable, gather)
    gather.close()


def _ask_offsets(
    call: Call, group: OffsetFetchRequestGroup, require_stable: bool, gather: ResultCollector[OffsetFetchResponseGroup]
) -> None:
    reply = gather.ask(lambda error: _fetch_refused(group, call.version, _fetch_error(error)))
    if not call.may(Operation.DESCRIBE, ResourceType.GROUP, group.group_id):
        reply.fail(GroupAuthorizationFailed())
        return
    refused = _resolve_fetch(call, group)

    def finish(response: OffsetFetchResponseGroup) -> None:
        response.topics = _shown(call, response.topics) + refused
        reply.reply(response)

    answer = ResponseCallback(finish, reply.fail)
    groups = call.broker.groups
    if require_stable:
        groups.write(group.group_id, lambda shard: shard.fetch_stable_offsets(group), answer)
    else:
        groups.read(group.group_id, lambda shard, at: shard.fetch_offsets(group, at), answer)


def _fetch_error(error: ApiError) -> ApiError:
    # Consumers before 3.9 do not expect COORDINATOR_NOT_AVAILABLE here; NOT_COORDINATOR makes them find the coordinator
    # again.
    return NotCoordinator() if isinstance(error, CoordinatorNotAvailable) else error


def _resolve_fetch(call: Call, group: OffsetFetchRequestGroup) -> list[OffsetFetchResponseTopics]:
    """Keep in the request only topics this client may describe, by name; returns error results for the others."""
    if group.topics is None:
        return []
    kept: list[OffsetFetchRequestTopics] = []
    refused: list[OffsetFetchResponseTopics] = []
    for topic in group.topics:
        if call.version >= FETCH_TOPIC_ID_VERSION:
            found = call.broker.image.topics.with_id(topic.topic_id)
            if found is None:
                refused.append(_topic_refused(topic, UnknownTopicId()))
                continue
            topic.name = found.name
        if call.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            kept.append(topic)
        else:
            refused.append(_topic_refused(topic, TopicAuthorizationFailed()))
    group.topics = kept
    return refused


def _shown(call: Call, topics: list[OffsetFetchResponseTopics]) -> list[OffsetFetchResponseTopics]:
    """The topics the client may describe; from version 10 on only those that have an id."""
    shown = []
    for topic in topics:
        if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name, is_filter=True):
            continue
        if call.version >= FETCH_TOPIC_ID_VERSION and topic.topic_id == ZERO_UUID:
            found = call.broker.image.topics.named(topic.name)
            if found is None:
                continue
            topic.topic_id = found.topic_id
        shown.append(topic)
    return shown


# OffsetDelete


@handles(47, needs=[Need(Operation.DELETE, ResourceType.GROUP), Need(Operation.READ, ResourceType.TOPIC)])
def handle_offset_delete(call: Call, request: OffsetDeleteRequest) -> None:
    if not call.may(Operation.DELETE, ResourceType.GROUP, request.group_id):
        raise GroupAuthorizationFailed
    kept: list[OffsetDeleteRequestTopic] = []
    refused: list[OffsetDeleteResponseTopic] = []
    for topic in request.topics:
        _split_delete(call, topic, kept, refused)

    def finish(response: OffsetDeleteResponse) -> None:
        for deleted in response.topics:
            for each in deleted.partitions:
                if not each.error_code:
                    audited(
                        call, "offset", f"{request.group_id}:{deleted.name}-{each.partition_index}", before="committed"
                    )
        for topic in refused:
            found = next((one for one in response.topics if one.name == topic.name), None)
            if found is None:
                response.topics.append(topic)
            else:
                found.partitions += topic.partitions
        call.reply(response)

    accepted = OffsetDeleteRequest(request.group_id, kept)
    call.broker.groups.write(
        request.group_id, lambda shard: shard.delete_offsets(accepted), ResponseCallback(finish, call.fail)
    )


def _split_delete(
    call: Call,
    topic: OffsetDeleteRequestTopic,
    kept: list[OffsetDeleteRequestTopic],
    refused: list[OffsetDeleteResponseTopic],
) -> None:
    image = call.broker.image.topics.named(topic.name)
    is_allowed = call.may(Operation.READ, ResourceType.TOPIC, topic.name)
    code = UnknownTopicOrPartition.code if is_allowed else TopicAuthorizationFailed.code
    known: list[OffsetDeleteRequestPartition] = []
    unknown: list[OffsetDeleteResponsePartition] = []
    for partition in topic.partitions:
        if is_allowed and image is not None and partition.partition_index in image.partitions:
            known.append(partition)
        else:
            unknown.append(OffsetDeleteResponsePartition(partition.partition_index, code))
    if known:
        kept.append(OffsetDeleteRequestTopic(topic.name, known))
    if unknown:
        refused.append(OffsetDeleteResponseTopic(topic.name, unknown))
