"""A controller makes itself known to the active one: ControllerRegistration.

Behaviour
- What a controller supports counts when features are raised; until it has registered none can be.
- Clusters older than 3.7 have no place for it, and answer UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from millbeck.controller.nodes import Registration
from millbeck.kernel.errors import ClusterAuthorizationFailed, UnsupportedVersion
from millbeck.metadata.features import CONTROLLER_REGISTRATION_FROM, FeatureRange
from millbeck.metadata.image import Endpoint
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.server.call import Call
from millbeck.server.dispatch import handles
from millbeck.wire.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


@handles(70)
async def handle_controller_registration(
    call: Call, request: ControllerRegistrationRequest
) -> ControllerRegistrationResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    if broker.quorum.image.features.metadata_version < CONTROLLER_REGISTRATION_FROM:
        raise UnsupportedVersion("The current MetadataVersion is too old to support controller registrations.")
    registration = Registration(
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
