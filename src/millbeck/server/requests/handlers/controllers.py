"""ControllerRegistration: a controller registers with the active controller.

Behaviour
- The features a controller supports limit feature upgrades; before it has registered no feature can be upgraded.
- With a metadata version below 3.7 the response is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from millbeck.controller.nodes import NodeRegistration
from millbeck.kernel.errors import ClusterAuthorizationFailed, UnsupportedVersion
from millbeck.metadata.features import CONTROLLER_REGISTRATION_FROM, FeatureRange
from millbeck.metadata.image import Endpoint
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.network.call import Call
from millbeck.server.network.route import Need, handles
from millbeck.wire.messages.nodes import ControllerRegistrationRequest, ControllerRegistrationResponse


@handles(70, needs=[Need(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)])
async def handle_controller_registration(
    call: Call, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    if broker.quorum.image.features.metadata_version < CONTROLLER_REGISTRATION_FROM:
        raise UnsupportedVersion("The current MetadataVersion is too old to support controller registrations.")
    registration = NodeRegistration(
        node_id=request.controller_id,
        incarnation_id=request.incarnation_id,
        endpoints=tuple(
            Endpoint(listener=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in request.listeners
        ),
        features={
            each.name: FeatureRange(each.min_supported_version, each.max_supported_version) for each in request.features
        },
    )
    await broker.quorum.submit(lambda image: broker.controller.register_controller(image, registration))
    return ControllerRegistrationResponse(error_message=None)
