"""Framing of messages on a connection: the length, and the header of a request or response.

A frame is an int32 length and that many bytes: a header, then the body. Request header 1 is API key, API version,
correlation id and a client id whose length is always an int16; header 2, of flexible API versions, adds a tagged
section. Response header 0 is the correlation id, header 1 adds a tagged section, and ApiVersions never uses header 1.
(Request header 0 was used by an API that Kafka 4 has removed.)
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final

from millbeck.wire.api_keys import API_VERSIONS, APIS, NEVER_FLEXIBLE
from millbeck.wire.decoder_source import skip_tags
from millbeck.wire.errors import DecodeError

Buffer = bytes | memoryview

LENGTH_SIZE: Final = 4

_LENGTH: Final = Struct(">i")
_REQUEST_HEADER: Final = Struct(">hhih")
_read_request_header: Final = _REQUEST_HEADER.unpack_from
_RESPONSE_HEADERS: Final = (Struct(">ii"), Struct(">iix"))


class _FlexibleFrom(dict[int, int]):
    """The first flexible version by API key, cached from the table."""

    def __missing__(self, key: int) -> int:
        found = self[key] = APIS[key].flexible_from
        return found


_FLEXIBLE_FROM: Final = _FlexibleFrom()
_RESPONSE_FLEXIBLE_FROM: Final = _FlexibleFrom({API_VERSIONS: NEVER_FLEXIBLE})


class RequestHeader:
    """A request header, and the position of the body in the same buffer."""

    __slots__ = ("api_key", "api_version", "body_position", "client_id", "correlation_id")

    def __init__(
        self, api_key: int, api_version: int, correlation_id: int, client_id: str | None, body_position: int
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body_position = body_position

    def __repr__(self) -> str:
        return (
            f"RequestHeader(api_key={self.api_key}, api_version={self.api_version}, "
            f"correlation_id={self.correlation_id}, client_id={self.client_id!r}, body_position={self.body_position})"
        )


def read_request_header(buffer: Buffer, position: int = 0) -> RequestHeader:
    """Decode the request header at ``position``, which is after the frame's length.

    Raises DecodeError if it is malformed or has an unknown API key. The caller must check the version: here it only
    determines the header's format, since a client with a newer ApiVersions version must get a response.
    """
    api_key: int
    api_version: int
    correlation_id: int
    client_id_size: int
    try:
        api_key, api_version, correlation_id, client_id_size = _read_request_header(buffer, position)
        position += 10
        client_id = None
        if client_id_size >= 0:
            stop = position + client_id_size
            client_id = str(buffer[position:stop], "utf-8")
            position = stop
        if api_version >= _FLEXIBLE_FROM[api_key]:
            tag_count = buffer[position]
            position += 1
            if tag_count:
                position = skip_tags(buffer, position, tag_count)
    except KeyError:
        raise DecodeError(f"request for unknown API key {api_key}") from None
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise DecodeError(f"request header: {error}") from None
    if position > len(buffer):
        raise DecodeError("request header: cut off")
    return RequestHeader(api_key, api_version, correlation_id, client_id, position)


def response_prefix(api_key: int, api_version: int, correlation_id: int, body_size: int) -> bytes:
    """Encode the frame length and response header for a body of ``body_size`` bytes."""
    if api_version >= _RESPONSE_FLEXIBLE_FROM[api_key]:
        return _RESPONSE_HEADERS[1].pack(body_size + 5, correlation_id)
    return _RESPONSE_HEADERS[0].pack(body_size + 4, correlation_id)


def read_response_header(api_key: int, api_version: int, buffer: Buffer, position: int = 0) -> tuple[int, int]:
    """Decode a response header; return the correlation id and the position of the body. Used by clients."""
    try:
        (correlation_id,) = _LENGTH.unpack_from(buffer, position)
        position += 4
        if api_version >= _RESPONSE_FLEXIBLE_FROM[api_key]:
            tag_count = buffer[position]
            position += 1
            if tag_count:
                position = skip_tags(buffer, position, tag_count)
    except (StructError, IndexError) as error:
        raise DecodeError(f"response header: {error}") from None
    if position > len(buffer):
        raise DecodeError("response header: cut off")
    return correlation_id, position


def request_prefix(api_key: int, api_version: int, correlation_id: int, client_id: str | None, body_size: int) -> bytes:
    """Encode the frame length and request header for a body of ``body_size`` bytes."""
    name = b"" if client_id is None else client_id.encode()
    tags = b"\0" if api_version >= _FLEXIBLE_FROM[api_key] else b""
    length = -1 if client_id is None else len(name)
    header = _REQUEST_HEADER.pack(api_key, api_version, correlation_id, length) + name + tags
    return _LENGTH.pack(len(header) + body_size) + header


def read_frame_size(buffer: Buffer, position: int, size_max: int) -> int:
    """Read the frame length at ``position``; raises DecodeError if it is negative or above ``size_max``."""
    size: int = _LENGTH.unpack_from(buffer, position)[0]
    if not 0 <= size <= size_max:
        raise DecodeError(f"frame size of {size} bytes is not between 0 and {size_max}")
    return size


def split_frames(buffer: Buffer, start: int, stop: int, size_max: int) -> tuple[list[tuple[int, int]], int]:
    """Find the complete frames between ``start`` and ``stop``, without their length prefix, and the start of the
    incomplete rest.

    Raises DecodeError as soon as a length is out of bounds, even if the frame is incomplete.
    """
    frames = []
    while stop - start >= LENGTH_SIZE:
        body = start + LENGTH_SIZE
        end = body + read_frame_size(buffer, start, size_max)
        if end > stop:
            break
        frames.append((body, end))
        start = end
    return frames, start
