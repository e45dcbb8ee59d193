"""Errors of codecs and of message declarations."""

from __future__ import annotations


class DecodeError(ValueError):
    """Received bytes are not a valid message; the only error a decoder raises for any input."""


class EncodeError(ValueError):
    """A value cannot be represented in the message's version; caused by the caller, never by the peer."""


class SchemaError(TypeError):
    """A declaration is inconsistent, or a message has no such version."""
