"""BrokerRegistration, BrokerHeartbeat, UnregisterBroker: the life of a broker's registration.

Behaviour
- Served by the active controller; any other answers NOT_CONTROLLER.
- A registration is answered with the broker's epoch, which its later requests must carry. While a broker with the same
  id sends heartbeats, another one is refused (DUPLICATE_BROKER_REGISTRATION).
- A heartbeat counts as contact when it arrives. It is answered with the broker's new state once that is committed, and
  at once when nothing changes.
- UnregisterBroker is for administrators, to remove brokers that will not return.
Versions
- BrokerRegistration 2: log directories; 3: the epoch of the previous clean shutdown; brokers of older versions are
  assumed to have shut down cleanly. BrokerHeartbeat 1: failed log directories; 2: cordoned ones.
"""

from __future__ import annotations

from typing import Final

from millbeck.controller.nodes import NodeRegistration
from millbeck.kernel.errors import BrokerIdNotRegistered, ClusterAuthorizationFailed
from millbeck.metadata.features import FeatureRange
from millbeck.metadata.image import Endpoint
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.nodes import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

TELLS_OF_ITS_END_FROM: Final = 3


@handles(62, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)])
async def handle_broker_registration(call: Call, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    _check_action(call)
    if request.is_migrating_zk_broker:
        raise BrokerIdNotRegistered("Controller does not support registering ZK brokers.")
    registration = NodeRegistration(
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


@handles(63, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)])
async def handle_broker_heartbeat(call: Call, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    _check_action(call)
    broker = call.broker
    began_ms = _monotonic_ms(call)
    broker.controller.broker_heartbeat_arrived(request, now_ms=began_ms)
    if broker.quorum.is_active:
        reply = broker.controller.reply_to_unchanged_heartbeat(
            broker.quorum.image, broker.quorum.commits.appended_image, request, now_ms=began_ms
        )
        if reply is not None:
            return reply
    try:
        return await broker.quorum.submit(
            lambda image: broker.controller.broker_heartbeat(image, request, now_ms=_monotonic_ms(call))
        )
    finally:
        if _monotonic_ms(call) - began_ms > broker.config.membership.broker_session_timeout_ms:
            broker.quorum.statistics.late_heartbeat_count += 1


@handles(64, needs=[Need(Operation.ALTER, ResourceType.CLUSTER)])
async def handle_unregister_broker(call: Call, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    if not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    await broker.quorum.submit(lambda image: broker.controller.unregister_broker(image, request.broker_id), by=call)
    return UnregisterBrokerResponse(error_message=None)


def _check_action(call: Call) -> None:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed


def _monotonic_ms(call: Call) -> int:
    return int(call.broker.environment.clock.monotonic() * 1000)
