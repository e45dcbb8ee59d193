"""Helpers for the compact encoding, shared by the hand-written codecs."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final, Protocol

from millbeck.wire.varint import unsigned_varint

TopicKey = str | bytes
"""A topic's name, or its id (16 bytes) in versions with topic ids."""

_pack_int32: Final = Struct(">i").pack


class Endpoint(Protocol):
    """Structural type of the node endpoints of Produce and Fetch."""

    node_id: int
    host: str
    port: int
    rack: str | None


def compact_string(text: str | None) -> bytes:
    if text is None:
        return b"\0"
    encoded = text.encode()
    return unsigned_varint(len(encoded) + 1) + encoded


def node_endpoints_section(endpoints: Sequence[Endpoint]) -> bytes:
    """Encode a tagged section that only contains tag 0, the endpoints of leaders (KIP-951)."""
    parts = [unsigned_varint(len(endpoints) + 1)]
    for endpoint in endpoints:
        parts.append(_pack_int32(endpoint.node_id))
        parts.append(compact_string(endpoint.host))
        parts.append(_pack_int32(endpoint.port))
        parts.append(compact_string(endpoint.rack))
        parts.append(b"\0")
    content = b"".join(parts)
    return b"\x01\0" + unsigned_varint(len(content)) + content
