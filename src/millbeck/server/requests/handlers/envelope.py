"""Envelope: a broker passes on what a client asked of it.

Behaviour
- Only nodes may: it takes CLUSTER_ACTION. The request inside is served with the rights of the client that the envelope
  names, and as if it had come from that client's address.
- Requests that brokers do not forward are INVALID_REQUEST, envelopes in envelopes among them.
- When this node is not the active controller the envelope itself says NOT_CONTROLLER, and the broker goes elsewhere.
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
from millbeck.server.call import Call
from millbeck.server.dispatch import Route, handles
from millbeck.server.inner_calls import InnerCall
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.errors import DecodeError
from millbeck.wire.framing import RequestHeader, read_request_header, response_prefix
from millbeck.wire.messages.envelope import EnvelopeRequest, EnvelopeResponse

LENGTH_SIZE = 4


@handles(58)
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
        raise InvalidRequest(f"the client's address: {error}") from None
    inner = InnerCall(
        broker,
        header.api_version,
        principal=principal,
        peer_host=host,
        authorizer=broker.authorizer,
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
        raise InvalidRequest(f"the request inside: {error}") from None
    broker = call.broker
    route = broker.inner_requests.route(header.api_key) if header.api_key in broker.forwarded_apis else None
    if route is None:
        raise InvalidRequest(f"API key {header.api_key} is not forwarded")
    if not route.min_version <= header.api_version <= route.max_version:
        raise UnsupportedVersion(f"API key {header.api_key} has no version {header.api_version} here")
    try:
        message, _ = codec.decoder(APIS[route.api_key].request, header.api_version)(data, header.body_position)
    except DecodeError as error:
        raise InvalidRequest(f"the request inside: {error}") from None
    return header, route, message
