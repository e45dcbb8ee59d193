"""FindCoordinator: which node coordinates a group.

Behaviour
- The leader of the key's partition of the internal topic. When the topic is missing it is created first, and the answer
  is COORDINATOR_NOT_AVAILABLE only if that fails.
- Transactions and share groups have no coordinator in this release; the refusal says so.
Versions
- 0 asks for a group. 1: the type of the key. 4: several keys, each with its error. 6: share keys.
"""

from __future__ import annotations

from collections.abc import Awaitable
from enum import IntEnum

from millbeck.kernel.errors import (
    ApiError,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    InvalidRequest,
    TransactionalIdAuthorizationFailed,
)
from millbeck.kernel.names import CONSUMER_OFFSETS_TOPIC
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

BATCHED_VERSION = 4
NO_NODE = -1


class KeyType(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


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
    is_missing = call.broker.image.topics.named(CONSUMER_OFFSETS_TOPIC) is None
    if is_missing and request.key_type == KeyType.GROUP:
        return _create_and_find(call, request)
    return _find_all(call, request)


async def _create_and_find(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    failures = await call.broker.auto_create([CONSUMER_OFFSETS_TOPIC])
    if CONSUMER_OFFSETS_TOPIC in failures:
        raise CoordinatorNotAvailable(str(failures[CONSUMER_OFFSETS_TOPIC]))
    return _find_all(call, request)


def _find_all(call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    keys = request.coordinator_keys if call.version >= BATCHED_VERSION else [request.key]
    found = []
    for key in keys:
        try:
            found.append(_find(call, request.key_type, key))
        except ApiError as error:
            found.append(_not_found(key, error))
    return _shape(found, call.version)


def _find(call: Call, key_type: int, key: str) -> Coordinator:
    broker = call.broker
    match key_type:
        case KeyType.GROUP:
            if not call.may(Operation.DESCRIBE, ResourceType.GROUP, key):
                raise GroupAuthorizationFailed
        case KeyType.TRANSACTION:
            if not call.may(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, key):
                raise TransactionalIdAuthorizationFailed
            # A refusal that every client takes for final; librdkafka would try others again for ever.
            raise TransactionalIdAuthorizationFailed("transactions are not available in this release")
        case KeyType.SHARE:
            raise InvalidRequest("share groups are not available in this release")
        case _:
            raise InvalidRequest(f"keys of type {key_type} are unknown")
    registration = broker.image.topics.partition(CONSUMER_OFFSETS_TOPIC, broker.groups.partition_for(key))
    leader = None if registration is None else broker.image.cluster.broker(registration.leader)
    address = None if leader is None else broker.address_of(leader.broker_id, leader.endpoints, call.connection)
    if leader is None or leader.is_fenced or address is None:
        raise CoordinatorNotAvailable
    return Coordinator(key, leader.broker_id, *address)
