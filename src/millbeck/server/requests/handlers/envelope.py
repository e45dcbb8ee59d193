"""Envelope: a broker forwards a client request to the controller (KIP-590).

Behaviour
- Requires CLUSTER_ACTION, so only nodes can use it. The embedded request is authorized for the principal and the client
  address that the envelope names.
- Requests that brokers do not forward, nested envelopes among them, are INVALID_REQUEST.
- When this node is not the active controller the envelope's response is NOT_CONTROLLER, and the broker looks for the
  active controller.
"""

from __future__ import annotations

from typing import Any

from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    InvalidRequest,
    PrincipalDeserializationFailure,
    UnsupportedVersion,
)
from millbeck.security.authorizer import CLUSTER_NAME, Operation, ResourceType
from millbeck.security.principal_bytes import decode_principal
from millbeck.server.network.call import Call
from millbeck.server.network.inner_calls import InnerCall
from millbeck.server.network.route import Need, Route, handles
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.errors import DecodeError
from millbeck.wire.framing import RequestHeader, read_request_header, response_prefix
from millbeck.wire.messages.nodes import EnvelopeRequest, EnvelopeResponse

LENGTH_SIZE = 4


@handles(
    58,
    needs=[
        Need(
            Operation.CLUSTER_ACTION,
            ResourceType.CLUSTER,
            when="the inner request is authorized for the principal and host that the envelope names",
        )
    ],
)
async def handle_envelope(call: Call, request: EnvelopeRequest) -> EnvelopeResponse:
    if not call.may(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise ClusterAuthorizationFailed
    broker = call.broker
    header, route, message = _unpack(call, request.request_data)
    try:
        principal = decode_principal(request.request_principal or b"")
    except DecodeError as error:
        raise PrincipalDeserializationFailure(str(error)) from None
    from ipaddress import ip_address

    try:
        host = str(ip_address(request.client_host_address))
    except ValueError as error:
        raise InvalidRequest(f"invalid client address: {error}") from None
    inner = InnerCall(
        broker,
        header.api_version,
        principal=principal,
        peer_host=host,
        client_id=header.client_id,
        connection=call.connection,
    )
    response = await broker.inner_requests.answer(route, inner, message)
    body = codec.encoder(APIS[route.api_key].response, header.api_version)(response)
    prefix = response_prefix(route.api_key, header.api_version, header.correlation_id, len(body))
    return EnvelopeResponse(response_data=prefix[LENGTH_SIZE:] + body)


def _unpack(call: Call, data: bytes) -> tuple[RequestHeader, Route, Any]:
    try:
        header = read_request_header(data)
    except DecodeError as error:
        raise InvalidRequest(f"invalid embedded request: {error}") from None
    broker = call.broker
    route = broker.inner_requests.route(header.api_key) if header.api_key in broker.forwarded_apis else None
    if route is None:
        raise InvalidRequest(f"API key {header.api_key} cannot be forwarded")
    if not route.min_version <= header.api_version <= route.max_version:
        raise UnsupportedVersion(f"API key {header.api_key} version {header.api_version} is not supported")
    try:
        message, _ = codec.decoder(APIS[route.api_key].request, header.api_version)(data, header.body_position)
    except DecodeError as error:
        raise InvalidRequest(f"invalid embedded request: {error}") from None
    return header, route, message
