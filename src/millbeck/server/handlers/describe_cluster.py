"""DescribeCluster: the brokers, or the controllers, of this cluster.

Behaviour
- Clients are told the address they dialled, as in Metadata. Asking a broker for controllers is
  MISMATCHED_ENDPOINT_TYPE.
Versions
- 1: the endpoint type. 2: fenced brokers.
"""

from __future__ import annotations

from typing import Final

from millbeck.kernel.errors import MismatchedEndpointType, UnsupportedEndpointType
from millbeck.security.authorizer import CLUSTER_NAME, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1
CONTROLLERS: Final = 2


@handles(60)
def handle_describe_cluster(call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    broker = call.broker
    if request.endpoint_type == CONTROLLERS:
        raise MismatchedEndpointType("this listener answers for brokers; ask a controller for controllers")
    if request.endpoint_type != BROKERS:
        raise UnsupportedEndpointType(f"endpoint type {request.endpoint_type} is unknown")
    host, port = broker.address_for(call.connection)
    registrations = [
        registration
        for _, registration in sorted(broker.image.cluster.brokers.items())
        if request.include_fenced_brokers or not registration.is_fenced
    ]
    response = DescribeClusterResponse(
        endpoint_type=BROKERS,
        cluster_id=broker.cluster_id,
        controller_id=broker.node_id,
        brokers=[
            DescribeClusterBroker(registration.broker_id, host, port, registration.rack, registration.is_fenced)
            for registration in registrations
        ],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = call.authorized_operations(ResourceType.CLUSTER, CLUSTER_NAME)
    return response
