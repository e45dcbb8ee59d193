"""SaslHandshake: choose how to authenticate. Never flexible."""

from __future__ import annotations

from millbeck.wire.schema import Kind, array, int16, message, string


@message(kind=Kind.REQUEST, api_key=17, versions="0-1")
class SaslHandshakeRequest:
    """After version 0 raw tokens follow, after version 1 SaslAuthenticate requests."""

    mechanism: str = string()


@message(kind=Kind.RESPONSE, api_key=17, versions="0-1")
class SaslHandshakeResponse:
    """The mechanisms this listener accepts."""

    error_code: int = int16()
    mechanisms: list[str] = array(of=string)
