"""Describes a peer that is not a Kafka broker, in one line, by its first bytes. Pure."""

from __future__ import annotations

from typing import Final

_TLS_RECORDS: Final = (0x15, 0x16)
_TLS_MAJOR: Final = 3
_PREFIX_SIZE: Final = 4
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""The maximum size of a response to ApiVersions, which has a few kilobytes; a larger one is not from a broker."""


def peer_description(first: bytes) -> str | None:
    """A description of the peer by its first bytes; None if it may be a Kafka broker."""
    if first.startswith((b"HTTP", b"<htm", b"<HTM", b"<!DO")):
        return "an HTTP server answered; is this the port of a Kafka listener?"
    if len(first) >= 2 and first[0] in _TLS_RECORDS and first[1] == _TLS_MAJOR:
        return "the server uses TLS, but this client does not: set security.protocol=SSL or SASL_SSL"
    if first.startswith(b"SSH-"):
        return "an SSH server answered; is this the port of a Kafka listener?"
    if len(first) >= _PREFIX_SIZE and int.from_bytes(first[:_PREFIX_SIZE], "big") > _ANSWER_BYTES_MAX:
        return f"the server is not a Kafka broker: its response begins with {first[:8]!r}; is the port correct?"
    return None
