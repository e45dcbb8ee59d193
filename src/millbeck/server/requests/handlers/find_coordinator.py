"""FindCoordinator: which node coordinates a group or a transactional id, or keeps the state of a share partition.

Behaviour
- The leader of the key's partition of the internal topic. When the topic is missing it is created first, and the answer
  is COORDINATOR_NOT_AVAILABLE only if that fails.
- Share keys are for brokers: group, topic id and partition, with colons in between.
Versions
- 0 asks for a group. 1: the type of the key. 4: several keys, each with its error. 6: share keys.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
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
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_VERSION = 4
SHARE_VERSION = 6
NO_NODE = -1


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


TOPICS: Final[Mapping[int, str]] = {
    KeyType.GROUP: CONSUMER_OFFSETS_TOPIC,
    KeyType.TRANSACTION: TRANSACTION_STATE_TOPIC,
    KeyType.SHARE: SHARE_GROUP_STATE_TOPIC,
}
"""The internal topic whose partitions' leaders coordinate keys of a type."""


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
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


@handles(10, error_reply=error_reply)
def handle_find_coordinator(
    call: Call, request: FindCoordinatorRequest
) -> FindCoordinatorResponse | Awaitable[FindCoordinatorResponse]:
    topic = TOPICS.get(request.key_type)
    is_missing = topic is not None and call.broker.image.topics.named(topic) is None
    if is_missing and any(_may_ask(call, request.key_type, key) for key in _keys_of(call, request)):
        assert topic is not None
        return _create_and_find(call, request, topic)
    return _find_all(call, request)


async def _create_and_find(call: Call, request: FindCoordinatorRequest, topic: str) -> FindCoordinatorResponse:
    failures = await call.broker.auto_create([topic])
    if topic in failures:
        raise CoordinatorNotAvailable(str(failures[topic]))
    return _find_all(call, request)


def _find_all(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    found = []
    for key in _keys_of(call, request):
        try:
            found.append(_find(call, request.key_type, key))
        except ApiError as error:
            found.append(_not_found(key, error))
    return _shape(found, call.version)


def _keys_of(call: Call, request: FindCoordinatorRequest) -> list[str]:
    return request.coordinator_keys if call.version >= BATCHED_VERSION else [request.key]


def _find(call: Call, key_type: int, key: str) -> Coordinator:
    _check(call, key_type, key)
    broker = call.broker
    topic = broker.image.topics.named(TOPICS[key_type])
    if topic is None:
        raise CoordinatorNotAvailable
    registration = topic.partitions.get(partition_for(key, len(topic.partitions)))
    leader = None if registration is None else broker.image.cluster.broker(registration.leader)
    address = None if leader is None else broker.address_of(leader.broker_id, leader.endpoints, call.connection)
    if leader is None or leader.is_fenced or address is None:
        raise CoordinatorNotAvailable
    return Coordinator(key, leader.broker_id, *address)


def _may_ask(call: Call, key_type: int, key: str) -> bool:
    try:
        _check(call, key_type, key)
    except ApiError:
        return False
    return True


def _check(call: Call, key_type: int, key: str) -> None:
    """Whether this client may ask about the key, and the key is one of its type."""
    match key_type:
        case KeyType.GROUP:
            if not call.may(Operation.DESCRIBE, ResourceType.GROUP, key):
                raise GroupAuthorizationFailed
        case KeyType.TRANSACTION:
            if not call.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
                raise TransactionalIdAuthorizationFailed
        case KeyType.SHARE:
            if call.version < SHARE_VERSION:
                raise InvalidRequest(f"version {call.version} has no share keys")
            if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
                raise ClusterAuthorizationFailed
            _check_share_key(key)
        case _:
            raise InvalidRequest(f"keys of type {key_type} are unknown")


def _check_share_key(key: str) -> None:
    # From its end, as a group's id may have colons of its own.
    group_and_topic, _, partition = key.rpartition(":")
    group_id, _, topic_id = group_and_topic.rpartition(":")
    try:
        parse_uuid(topic_id)
        is_right = bool(group_id) and int(partition) >= 0
    except ValueError:
        is_right = False
    if not is_right:
        raise InvalidRequest("a share key is a group's id, a topic's id and a partition, with colons in between")
