"""Brokers come, tell that they live, and go: BrokerRegistration, BrokerHeartbeat, UnregisterBroker.

Behaviour
- Served by the active controller; any other answers NOT_CONTROLLER.
- A registration is answered with the broker's epoch, which all it says later must carry. While a process of the same id
  is heard from, another one is refused (DUPLICATE_BROKER_REGISTRATION).
- A heartbeat is answered with the state the broker is in from then on: once that is committed.
- UnregisterBroker is for administrators, and for brokers that will not come back.
Versions
- BrokerRegistration 2: log directories; 3: the epoch under which the last process ended in good order. Older brokers
  are believed to have. BrokerHeartbeat 1: directories that were lost; 2: those closed to new partitions.
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.nodes import Registration
from millbeck.kernel.errors import BrokerIdNotRegistered, ClusterAuthorizationFailed
from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image import Endpoint
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from millbeck.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse
from millbeck.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse

TELLS_OF_ITS_END_FROM: Final = 3


@handles(62)
async def handle_broker_registration(call: Call, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    _check_action(call)
    if request.is_migrating_zk_broker:
        raise BrokerIdNotRegistered("Controller does not support registering ZK brokers.")
    registration = Registration(
        node_id=request.broker_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            Endpoint(listener=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ),
        features={
            each.name: FeatureRange(each.min_supported_version, each.max_supported_version) for each in request.features
        },
        rack=request.rack,
        directories=tuple(request.log_dirs),
        cluster_id=request.cluster_id,
        previous_broker_epoch=request.previous_broker_epoch if call.version >= TELLS_OF_ITS_END_FROM else None,
    )
    broker = call.broker
    epoch = await broker.quorum.submit(
        lambda image: broker.controller.register_broker(image, registration, now_ms=_monotonic_ms(call))
    )
    return BrokerRegistrationResponse(broker_epoch=epoch)


@handles(63)
async def handle_broker_heartbeat(call: Call, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    _check_action(call)
    broker = call.broker
    began_ms = _monotonic_ms(call)
    try:
        return await broker.quorum.submit(
            lambda image: broker.controller.broker_heartbeat(image, request, now_ms=_monotonic_ms(call))
        )
    finally:
        if _monotonic_ms(call) - began_ms > broker.config.membership.broker_session_timeout_ms:
            broker.quorum.statistics.late_heartbeat_count += 1


@handles(64)
async def handle_unregister_broker(call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    await broker.quorum.submit(lambda image: broker.controller.unregister_broker(image, request.broker_id))
    return UnregisterBrokerResponse(error_message=None)


def _check_action(call: Call) -> None:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed


def _monotonic_ms(call: Call) -> int:
    return int(call.broker.environment.clock.monotonic() * 1000)
