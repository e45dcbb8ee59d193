"""The two ways a codec fails: the peer sent bad bytes, or we tried to send a bad value."""

from __future__ import annotations


class DecodeError(ValueError):
    """Bytes from outside that are not a valid message; the only error a decoder raises for any input."""


class EncodeError(ValueError):
    """A value that the message's version cannot carry; a mistake of the caller, never of the peer."""


class SchemaError(TypeError):
    """A declaration that contradicts itself, or a version that the message does not have."""
