"""DescribeCluster: the brokers, or the controllers, of this cluster.

Behaviour
- A client listener lists the brokers, a controller listener the controllers; asking for the other kind is
  MISMATCHED_ENDPOINT_TYPE.
- Controllers are shown only to those who may alter the cluster, brokers to everyone.
- As in Metadata, a client gets the address of this node that it connected to, and the addresses the other nodes
  advertise under the same listener name.
Versions
- 1: the endpoint type. 2: fenced brokers.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import ClusterAuthorizationFailed, MismatchedEndpointType, UnsupportedEndpointType
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.metadata import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse

BROKERS: Final = 1
CONTROLLERS: Final = 2


@handles(60, needs=[Need(Operation.ALTER, ResourceType.CLUSTER, when="the listener is a controller's")])
def handle_describe_cluster(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    asked = request.endpoint_type
    if asked not in (BROKERS, CONTROLLERS):
        raise UnsupportedEndpointType(f"unknown endpoint type {asked}")
    if (asked == CONTROLLERS) != call.connection.listener.is_controllers:
        mine, theirs = ("brokers", "controllers") if asked == CONTROLLERS else ("controllers", "brokers")
        raise MismatchedEndpointType(
            f"this listener describes {mine}; send the request to a {theirs[:-1]} for {theirs}"
        )
    if asked == CONTROLLERS and not call.may(Operation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    response = DescribeClusterResponse(
        endpoint_type=asked,
        cluster_id=call.broker.cluster_id,
        controller_id=call.broker.controller_id(call.connection.listener.is_controllers),
        brokers=_controllers(call) if asked == CONTROLLERS else _brokers(call, request.include_fenced_brokers),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = call.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return response


def _brokers(call: Call, includes_fenced: bool) -> list[DescribeClusterBroker]:
    brokers = []
    for _, registration in sorted(call.broker.image.cluster.brokers.items()):
        address = call.broker.address_of(registration.broker_id, registration.endpoints, call.connection)
        if address is not None and (includes_fenced or not registration.is_fenced):
            brokers.append(
                DescribeClusterBroker(registration.broker_id, *address, registration.rack, registration.is_fenced)
            )
    return brokers


def _controllers(call: Call) -> list[DescribeClusterBroker]:
    controllers = []
    for _, registration in sorted(call.broker.image.cluster.controllers.items()):
        address = call.broker.address_of(registration.controller_id, registration.endpoints, call.connection)
        if address is not None:
            controllers.append(DescribeClusterBroker(registration.controller_id, *address, None))
    return controllers
