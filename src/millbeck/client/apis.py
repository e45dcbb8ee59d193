"""The properties of an API that a client needs, derived from the request class alone.

`wire.api_keys` has the table of all APIs and imports every message for it; a command that sends three types of requests
should import only those, so the client does not use that table.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Any, Final

from millbeck.wire.decoder_source import skip_tags
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, schema_of

API_VERSIONS: Final = 18
_NEVER: Final = 1 << 15
_REQUEST_HEADER: Final = Struct(">ihhih")
_CORRELATION_ID: Final = Struct(">i")


class Call:
    """One API as declared by its request class."""

    __slots__ = ("flexible_from", "key", "max_version", "min_version", "name", "request", "response_flexible_from")

    def __init__(self, request: type[Any]) -> None:
        schema = schema_of(request)
        assert schema.kind is Kind.REQUEST, f"{schema.name} is not a request"
        assert schema.api_key is not None
        self.request = request
        self.key = schema.api_key
        self.name = schema.name.removesuffix("Request")
        self.min_version = schema.versions.low
        self.max_version = schema.versions.high
        self.flexible_from = _NEVER if schema.flexible.is_empty else schema.flexible.low
        # ApiVersions responses always use header v0, so that a client that asked with too high a version can read them.
        self.response_flexible_from = _NEVER if self.key == API_VERSIONS else self.flexible_from

    def __repr__(self) -> str:
        return f"<{self.name} {self.min_version}-{self.max_version}>"


_calls: dict[type[Any], Call] = {}


def call_of(request: type[Any]) -> Call:
    call = _calls.get(request)
    if call is None:
        call = _calls[request] = Call(request)
    return call


def request_prefix(call: Call, version: int, correlation_id: int, client_id: bytes | None, body_size: int) -> bytes:
    """The frame's length prefix and the request header, for a body of ``body_size`` bytes."""
    tags = b"\0" if version >= call.flexible_from else b""
    name = client_id or b""
    size = _REQUEST_HEADER.size - 4 + len(name) + len(tags) + body_size
    length = -1 if client_id is None else len(name)
    return _REQUEST_HEADER.pack(size, call.key, version, correlation_id, length) + name + tags


def body_position(call: Call, version: int, frame: bytes) -> int:
    """The position of the body in a response frame (without length prefix); raises `DecodeError`."""
    if version < call.response_flexible_from:
        return 4
    try:
        tag_count = frame[4]
        return skip_tags(frame, 5, tag_count) if tag_count else 5
    except (StructError, IndexError) as error:
        raise DecodeError(f"response header: {error}") from None


def correlation_id_of(frame: bytes) -> int:
    """The correlation id of a response frame (without length prefix); raises `DecodeError`."""
    if len(frame) < 4:
        raise DecodeError(f"response of {len(frame)} bytes has no correlation id")
    found: int = _CORRELATION_ID.unpack_from(frame)[0]
    return found
