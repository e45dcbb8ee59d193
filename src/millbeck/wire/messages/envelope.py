"""Envelope: a broker forwards a client's request to the controller."""

from __future__ import annotations

from millbeck.wire.schema import Kind, bytes_, int16, message


@message(kind=Kind.REQUEST, api_key=58, versions="0", flexible="0+")
class EnvelopeRequest:
    """The embedded request keeps its own header."""

    request_data: bytes = bytes_()
    request_principal: bytes | None = bytes_(nullable="0+")
    client_host_address: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=58, versions="0", flexible="0+")
class EnvelopeResponse:
    """The embedded response, or why there is none."""

    response_data: bytes | None = bytes_(nullable="0+", default=None)
    error_code: int = int16()
