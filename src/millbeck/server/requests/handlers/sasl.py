"""Handle SaslHandshake and SaslAuthenticate as ordinary requests: on listeners without SASL, or after authentication.

A listener with SASL handles both before they get here (`requests.authentication`). ApiVersions lists both APIs on every
listener, as in Kafka.
"""

from __future__ import annotations

from millbeck.kernel.errors import IllegalSaslState
from millbeck.server.network.call import Call
from millbeck.server.network.route import handles
from millbeck.wire.messages.authentication import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)


@handles(17, needs=[])
def handle_sasl_handshake(call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=IllegalSaslState.code)


@handles(36, needs=[])
def handle_sasl_authenticate(call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(
        error_code=IllegalSaslState.code,
        error_message="SaslAuthenticate request received after successful authentication",
    )
