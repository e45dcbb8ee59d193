"""Metadata: brokers, topics, and who leads which partition.

Behaviour
- Version 0: no topics means all; later null means all and an empty list none.
- A missing topic is created when the request, ``auto.create.topics.enable`` and the authorizer allow it, and is in the
  answer when that is done.
- A topic that is named twice is answered once.
- A name that may not be described is refused whether or not there is such a topic; ids are no secret.
- Clients are told the address of this node that they dialled, unless ``advertised.listeners`` names another, and of the
  other nodes what they advertise under the same listener's name; a broker without such a listener is left out.
- The controller is any live broker: administrative requests are taken everywhere.
Versions
- 10: topic ids in replies. 12: lookup by id alone; an unknown one is UNKNOWN_TOPIC_ID with a null name. 13: an error
  for all.

Replies to the common questions are kept as bytes until the image changes.
"""

from __future__ import annotations

from typing import Any, Final

from millbeck.kernel.errors import (
    ApiError,
    InvalidRequest,
    InvalidTopic,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from millbeck.kernel.ids import ZERO_UUID
from millbeck.kernel.names import check_topic_name, is_internal_topic
from millbeck.metadata.image import TopicImage
from millbeck.security.authorizer import CLUSTER_NAME, AllowAll, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire import codec
from millbeck.wire.framing import response_prefix
from millbeck.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

LEADER_NOT_AVAILABLE: Final = 5
LOOKUP_BY_ID_FROM: Final = 12


def error_reply(request: MetadataRequest | None, version: int, error: ApiError) -> MetadataResponse | None:
    if request is None:
        return None
    topics = [
        MetadataResponseTopic(
            error_code=error.code, name=topic.name if version >= LOOKUP_BY_ID_FROM else topic.name or ""
        )
        for topic in request.topics or ()
    ]
    return MetadataResponse(topics=topics, error_code=error.code)


@handles(3, error_reply=error_reply)
def handle_metadata(call: Call, request: MetadataRequest) -> Any:
    broker = call.broker
    _check_names(call, request)
    if request.topics:
        # Once each, as in Kafka: a few bytes that name a topic make an answer of megabytes.
        request.topics = list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())
    asks_for_all = request.topics is None or (call.version == 0 and not request.topics)
    key = (
        call.version,
        broker.address_for(call.connection),
        call.connection.listener.address.name,
        None if asks_for_all else tuple((topic.name, topic.topic_id) for topic in request.topics or ()),
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
        None if isinstance(broker.authorizer, AllowAll) else (call.principal, call.connection.peer_host),
        # A log that fails makes its replica an offline one without a new image.
        broker.logs.offline_count,
    )
    body = broker.metadata_replies.get(broker.image, key)
    if body is None:
        may_create = broker.config.topic_defaults.auto_create_topics_enable and (
            call.version < 4 or request.allow_auto_topic_creation
        )
        missing = _missing_names(call, request) if may_create and not asks_for_all else []
        if missing:
            return _create_and_answer(call, request, missing)
        body = _encode(call, request, asks_for_all, {})
        broker.metadata_replies.put(key, body)
    call.complete((response_prefix(3, call.version, call.correlation_id, len(body)), body))
    return None


def _check_names(call: Call, request: MetadataRequest) -> None:
    if call.version >= LOOKUP_BY_ID_FROM:
        return
    for topic in request.topics or ():
        if topic.name is None or topic.topic_id != ZERO_UUID:
            raise InvalidRequest(f"version {call.version} asks for topics by name")


async def _create_and_answer(call: Call, request: MetadataRequest, missing: list[str]) -> None:
    errors: dict[str, ApiError] = {}
    if not call.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME):
        errors = {
            name: TopicAuthorizationFailed()
            for name in missing
            if not call.may(Operation.CREATE, ResourceType.TOPIC, name)
        }
    allowed = [name for name in missing if name not in errors]
    if allowed:
        errors |= await call.broker.auto_create(allowed)
    body = _encode(call, request, False, errors)
    call.complete((response_prefix(3, call.version, call.correlation_id, len(body)), body))


def _missing_names(call: Call, request: MetadataRequest) -> list[str]:
    """Topics asked for by name that are not there; those the client may not describe it may not create either."""
    by_name = call.broker.image.topics.by_name
    names = [topic.name for topic in request.topics or () if topic.topic_id == ZERO_UUID]
    return [
        name
        for name in dict.fromkeys(names)
        if name and name not in by_name and call.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]


def _encode(call: Call, request: MetadataRequest, asks_for_all: bool, errors: dict[str, ApiError]) -> bytes:
    broker = call.broker
    image = broker.image
    topics: list[MetadataResponseTopic] = []
    if asks_for_all:
        names = sorted(image.topics.by_name)
        visible = [name for name in names if call.may(Operation.DESCRIBE, ResourceType.TOPIC, name)]
        topics = [_topic(call, request, image.topics.by_name[name]) for name in visible]
    else:
        for asked in request.topics or ():
            topics.append(_asked_topic(call, request, asked.name, asked.topic_id, errors))
    reachable = (
        (each, broker.address_of(each.broker_id, each.endpoints, call.connection))
        for each in image.cluster.unfenced_brokers()
    )
    answer = MetadataResponse(
        brokers=[
            MetadataResponseBroker(each.broker_id, *address, each.rack)
            for each, address in reachable
            if address is not None
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.controller_id(False),
        topics=topics,
    )
    if request.include_cluster_authorized_operations:
        answer.cluster_authorized_operations = call.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return codec.encoder(MetadataResponse, call.version)(answer)


def _asked_topic(
    call: Call, request: MetadataRequest, name: str | None, topic_id: bytes, errors: dict[str, ApiError]
) -> MetadataResponseTopic:
    topics = call.broker.image.topics
    if topic_id != ZERO_UUID:
        topic = topics.with_id(topic_id)
        if topic is None:
            return _refused(call, UnknownTopicId(), None, topic_id)
        if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, topic.name):
            return _refused(call, TopicAuthorizationFailed(), None, topic_id)
        return _topic(call, request, topic)
    if name is None:
        return _refused(call, InvalidTopic("neither a name nor an id"), None, topic_id)
    if not call.may(Operation.DESCRIBE, ResourceType.TOPIC, name):
        return _refused(call, TopicAuthorizationFailed(), name, ZERO_UUID)
    topic = topics.named(name)
    if topic is not None:
        return _topic(call, request, topic)
    if name in errors:
        return _refused(call, errors[name], name, ZERO_UUID)
    try:
        check_topic_name(name)
    except InvalidTopic as error:
        return _refused(call, error, name, ZERO_UUID)
    return _refused(call, UnknownTopicOrPartition(), name, ZERO_UUID)


def _refused(call: Call, error: ApiError, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    shown = name if call.version >= LOOKUP_BY_ID_FROM else name or ""
    return MetadataResponseTopic(
        error_code=error.code, name=shown, topic_id=topic_id, is_internal=name is not None and is_internal_topic(name)
    )


def _topic(call: Call, request: MetadataRequest, topic: TopicImage) -> MetadataResponseTopic:
    partitions = []
    for index in sorted(topic.partitions):
        partition = topic.partitions[index]
        partitions.append(
            MetadataResponsePartition(
                0 if partition.has_leader else LEADER_NOT_AVAILABLE,
                index,
                partition.leader,
                partition.leader_epoch,
                list(partition.replicas),
                list(partition.isr),
                call.broker.offline_replicas(topic.name, index, partition),
            )
        )
    answer = MetadataResponseTopic(0, topic.name, topic.topic_id, is_internal_topic(topic.name), partitions)
    if request.include_topic_authorized_operations:
        answer.topic_authorized_operations = call.authorized_operations(ResourceType.TOPIC, topic.name)
    return answer
