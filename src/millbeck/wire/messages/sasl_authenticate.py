"""SaslAuthenticate: one step of the chosen mechanism."""

from __future__ import annotations

from millbeck.wire.schema import Kind, bytes_, int16, int64, message, string


@message(kind=Kind.REQUEST, api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateRequest:
    """The client's next token."""

    auth_bytes: bytes = bytes_()


@message(kind=Kind.RESPONSE, api_key=36, versions="0-2", flexible="2+")
class SaslAuthenticateResponse:
    """The server's answer to it. Version 1 says when to authenticate again (KIP-368)."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    auth_bytes: bytes = bytes_()
    session_lifetime_ms: int = int64(versions="1+", ignorable=True, doc="0 when the session does not end.")
