"""What answered instead of a broker, in one line. Pure: bytes in, words out."""

from __future__ import annotations

from typing import Final

_TLS_RECORDS: Final = (0x15, 0x16)
_TLS_MAJOR: Final = 3
_PREFIX_SIZE: Final = 4
_ANSWER_BYTES_MAX: Final = 64 * 1024 * 1024
"""The answer to ApiVersions is a few kilobytes; anything beyond this is no answer of a broker."""


def stranger(first: bytes) -> str | None:
    """What answered, if it is no Kafka broker, by its first bytes; None if it may be one."""
    if first.startswith((b"HTTP", b"<htm", b"<HTM", b"<!DO")):
        return "an HTTP server answers there; is this the port of a Kafka listener?"
    if len(first) >= 2 and first[0] in _TLS_RECORDS and first[1] == _TLS_MAJOR:
        return "it speaks TLS, and this client does not: set security.protocol=SSL or SASL_SSL"
    if first.startswith(b"SSH-"):
        return "an SSH server answers there; is this the port of a Kafka listener?"
    if len(first) >= _PREFIX_SIZE and int.from_bytes(first[:_PREFIX_SIZE], "big") > _ANSWER_BYTES_MAX:
        return f"what answers there is no Kafka broker: it began with {first[:8]!r}; is the port right?"
    return None
