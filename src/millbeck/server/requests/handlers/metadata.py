"""Metadata: brokers, topics, and the leaders of their partitions.

Behaviour
- Version 0: no topics means all; later null means all and an empty list none.
- A missing topic is created when the request, ``auto.create.topics.enable`` and the authorizer allow it, but in the
  background (`auto_creation`): the response is UNKNOWN_TOPIC_OR_PARTITION at once, and the client retries.
- A topic named twice is answered once.
- A topic name the client may not describe is refused whether or not the topic exists; topic ids are not secret.
- Clients get the address of this node that they connected to, unless ``advertised.listeners`` sets another, and the
  addresses the other nodes advertise under the same listener name; a broker without that listener is left out.
- The controller in the response is any live broker: every broker forwards administrative requests.
Versions
- 10: topic ids in replies. 12: lookup by id alone; an unknown id is UNKNOWN_TOPIC_ID with a null name. 13: a top-level
  error.

Responses to common requests are cached as bytes until the metadata image changes.
"""

from __future__ import annotations

from typing import Final

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
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire import codec
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


@handles(
    3,
    needs=[
        Need(
            Operation.DESCRIBE,
            ResourceType.TOPIC,
            denied="TOPIC_AUTHORIZATION_FAILED; topics that were not named are left out",
        ),
        Need(Operation.CREATE, ResourceType.CLUSTER, when="a missing topic is to be created")
        | Need(Operation.CREATE, ResourceType.TOPIC),
    ],
    error_reply=error_reply,
)
def handle_metadata(call: Call, request: MetadataRequest) -> None:
    broker = call.broker
    _check_names(call, request)
    if request.topics:
        # Each topic once, as in Kafka: a few bytes naming a topic cause megabytes of response.
        request.topics = list({(topic.name, topic.topic_id): topic for topic in request.topics}.values())
    asks_for_all = request.topics is None or (call.version == 0 and not request.topics)
    key = (
        call.version,
        broker.address_for(call.connection),
        call.connection.listener.address.name,
        None if asks_for_all else tuple((topic.name, topic.topic_id) for topic in request.topics or ()),
        request.include_topic_authorized_operations,
        request.include_cluster_authorized_operations,
        None
        if isinstance(broker.authorizer, AllowAll)
        else (call.principal, call.connection.peer_host, broker.authorizer.epoch),
        # Part of the cache key: a failed log makes its replica offline without a new image.
        broker.logs.offline_count,
    )
    may_create = broker.config.topic_defaults.auto_create_topics_enable and (
        call.version < 4 or request.allow_auto_topic_creation
    )
    refused = _create_missing(call, request) if may_create and not asks_for_all else {}
    # Not cached: TOPIC_AUTHORIZATION_FAILED for creation depends on a flag that is not part of the cache key.
    body = None if refused else broker.metadata_replies.get(broker.image, key)
    if body is None:
        body = _encode(call, request, asks_for_all, refused)
        if not refused:
            broker.metadata_replies.put(key, body)
    call.reply_encoded(body, throttled_from=3)


def _check_names(call: Call, request: MetadataRequest) -> None:
    if call.version >= LOOKUP_BY_ID_FROM:
        return
    for topic in request.topics or ():
        if topic.name is None or topic.topic_id != ZERO_UUID:
            raise InvalidRequest(f"version {call.version} supports topic names only")


def _create_missing(call: Call, request: MetadataRequest) -> dict[str, ApiError]:
    """Create missing topics in the background; returns the errors of those this client may not create."""
    missing = _missing_names(call, request)
    refused: dict[str, ApiError] = {}
    if missing and not call.may(Operation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME, is_filter=True):
        refused = {
            name: TopicAuthorizationFailed()
            for name in missing
            if not call.may(Operation.CREATE, ResourceType.TOPIC, name)
        }
    call.broker.auto_creation.request(name for name in missing if name not in refused)
    return refused


def _missing_names(call: Call, request: MetadataRequest) -> list[str]:
    """Requested topics with a valid name that do not exist and that the client may describe."""
    by_name = call.broker.image.topics.by_name
    names = [topic.name for topic in request.topics or () if topic.topic_id == ZERO_UUID]
    return [
        name
        for name in dict.fromkeys(names)
        if name and name not in by_name and _is_valid(name) and call.may(Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]


def _is_valid(name: str) -> bool:
    try:
        check_topic_name(name)
    except InvalidTopic:
        return False
    return True


def _encode(call: Call, request: MetadataRequest, asks_for_all: bool, errors: dict[str, ApiError]) -> bytes:
    broker = call.broker
    image = broker.image
    topics: list[MetadataResponseTopic] = []
    if asks_for_all:
        names = sorted(image.topics.by_name)
        visible = [name for name in names if call.may(Operation.DESCRIBE, ResourceType.TOPIC, name, is_filter=True)]
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
        return _refused(call, InvalidTopic("neither topic name nor topic id is set"), None, topic_id)
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
        return _missing(call, request, error, name)
    return _missing(call, request, UnknownTopicOrPartition(), name)


def _missing(call: Call, request: MetadataRequest, error: ApiError, name: str) -> MetadataResponseTopic:
    """A topic that does not exist, for a client that may describe it."""
    answer = _refused(call, error, name, ZERO_UUID)
    answer.is_internal = is_internal_topic(name)
    if request.include_topic_authorized_operations:
        answer.topic_authorized_operations = call.authorized_operations(ResourceType.TOPIC, name)
    return answer


def _refused(call: Call, error: ApiError, name: str | None, topic_id: bytes) -> MetadataResponseTopic:
    shown = name if call.version >= LOOKUP_BY_ID_FROM else name or ""
    return MetadataResponseTopic(error_code=error.code, name=shown, topic_id=topic_id)


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
