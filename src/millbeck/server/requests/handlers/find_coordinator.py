"""FindCoordinator: the coordinator of a group, a transactional id or a share partition.

Behaviour
- The coordinator is the leader of the key's partition of the internal topic. A missing topic is created in the
  background (`auto_creation`), and the response is COORDINATOR_NOT_AVAILABLE at once.
- Share keys are used by brokers: group, topic id and partition, separated by colons.
Versions
- 0: groups only. 1: key types. 4: several keys, each with its error. 6: share keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from millbeck.coordinator.partitioner import partition_for
from millbeck.kernel.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    InvalidRequest,
    TransactionalIdAuthorizationFailed,
)
from millbeck.kernel.ids import parse_uuid
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC, SHARE_GROUP_STATE_TOPIC, TRANSACTION_STATE_TOPIC
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.groups import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_VERSION = 4
SHARE_VERSION = 6
NO_NODE = -1
NO_ERROR = "NONE"
"""The error message of versions 1 to 3 on success: Kafka sends the name of the error."""


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


TOPICS: Final[Mapping[int, str]] = {
    KeyType.GROUP: CONSUMER_OFFSETS_TOPIC,
    KeyType.TRANSACTION: TRANSACTION_STATE_TOPIC,
    KeyType.SHARE: SHARE_GROUP_STATE_TOPIC,
}
"""The internal topic whose partition leaders are the coordinators, by key type."""


def error_reply(
    request: FindCoordinatorRequest | None, version: int, error: ApiError
) -> FindCoordinatorResponse | None:
    if request is None:
        return None
    keys = request.coordinator_keys if version >= BATCHED_VERSION else [request.key]
    return _shape([_not_found(key, error) for key in keys], version)


def _not_found(key: str, error: ApiError) -> Coordinator:
    return Coordinator(key, NO_NODE, "", NO_NODE, error.code, str(error))


def _shape(coordinators: list[Coordinator], version: int) -> FindCoordinatorResponse:
    if version >= BATCHED_VERSION:
        return FindCoordinatorResponse(coordinators=coordinators)
    one = coordinators[0]
    return FindCoordinatorResponse(
        error_code=one.error_code,
        error_message=one.error_message if one.error_code else NO_ERROR,
        node_id=one.node_id,
        host=one.host,
        port=one.port,
    )


@handles(
    10,
    needs=[
        Need(Operation.DESCRIBE, ResourceType.GROUP, when="the key is a group"),
        Need(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, when="the key is a transactional id"),
        Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, when="the key is a share partition"),
    ],
    error_reply=error_reply,
)
def handle_find_coordinator(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    found = []
    for key in request.coordinator_keys if call.version >= BATCHED_VERSION else [request.key]:
        try:
            found.append(_find(call, request.key_type, key))
        except ApiError as error:
            found.append(_not_found(key, error))
    return _shape(found, call.version)


def _find(call: Call, key_type: int, key: str) -> Coordinator:
    _check(call, key_type, key)
    broker = call.broker
    topic = broker.image.topics.named(TOPICS[key_type])
    if topic is None:
        broker.auto_creation.request([TOPICS[key_type]])
        raise CoordinatorNotAvailable
    registration = topic.partitions.get(partition_for(key, len(topic.partitions)))
    leader = None if registration is None else broker.image.cluster.broker(registration.leader)
    address = None if leader is None else broker.address_of(leader.broker_id, leader.endpoints, call.connection)
    if leader is None or leader.is_fenced or address is None:
        raise CoordinatorNotAvailable
    return Coordinator(key, leader.broker_id, *address)


def _check(call: Call, key_type: int, key: str) -> None:
    """Check that this client may ask for the key and that the key has the format of its type."""
    match key_type:
        case KeyType.GROUP:
            if not call.may(Operation.DESCRIBE, ResourceType.GROUP, key):
                raise GroupAuthorizationFailed
        case KeyType.TRANSACTION:
            if not call.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
                raise TransactionalIdAuthorizationFailed
        case KeyType.SHARE:
            if call.version < SHARE_VERSION:
                raise InvalidRequest(f"version {call.version} does not support share keys")
            if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
                raise ClusterAuthorizationFailed
            _check_share_key(key)
        case _:
            raise InvalidRequest(f"unknown key type {key_type}")


def _check_share_key(key: str) -> None:
    # Split from the end, as a group id may contain colons.
    group_and_topic, _, partition = key.rpartition(":")
    group_id, _, topic_id = group_and_topic.rpartition(":")
    try:
        parse_uuid(topic_id)
        is_right = bool(group_id) and int(partition) >= 0
    except ValueError:
        is_right = False
    if not is_right:
        raise InvalidRequest("a share key must be groupId:topicId:partition")
