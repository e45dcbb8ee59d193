"""Encoders and decoders of declared messages, generated per (class, version) on first use.

    decode = codec.decoder(MetadataRequest, 12)
    request, position = decode(buffer)           # DecodeError for bad input, and nothing else
    body = codec.encoder(MetadataResponse, 12)(response)

Strings are `str`, bytes fields `bytes`, uuids 16 `bytes`, arrays `list`; fields are attributes in snake_case.

A decoder ignores bytes after the message: the caller compares the position with the buffer's size. The decoded message
owns its memory; a buffer that is not `bytes` is copied first, so pass only the part that contains the message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from millbeck.wire.decoder_source import DecoderSource
from millbeck.wire.encoder_source import EncoderSource
from millbeck.wire.errors import DecodeError, EncodeError, SchemaError
from millbeck.wire.layout import shape_of
from millbeck.wire.schema import Kind, Schema, schema_of

__all__ = ["REQUEST_OBJECT_COUNT_MAX", "Buffer", "DecodeError", "Decoder", "EncodeError", "SchemaError"]
__all__ += ["decoder", "encoder"]

Buffer = bytes | bytearray | memoryview

REQUEST_OBJECT_COUNT_MAX = 200_000
"""Approximate limit of Python objects per request: a small frame must not exhaust memory."""

_TRUSTED_OBJECT_COUNT_MAX = 5_000_000

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Decoder(Protocol[T_co]):
    def __call__(self, buffer: Buffer, position: int = 0, /) -> tuple[T_co, int]:
        """Decode the message at ``position``; return it and the position after it."""


_decoders: dict[tuple[type[Any], int], Decoder[Any]] = {}
_encoders: dict[tuple[type[Any], int], Callable[[Any], bytes]] = {}


def decoder(cls: type[T], version: int) -> Decoder[T]:
    """Return the decoder of ``cls`` at ``version``; raises SchemaError if the message has no such version."""
    found = _decoders.get((cls, version))
    if found is None:
        found = _decoders[cls, version] = _make_decoder(cls, version)
    return found


def encoder(cls: type[T], version: int) -> Callable[[T], bytes]:
    """Return the encoder of ``cls`` at ``version``; it raises `EncodeError` for values the version cannot represent."""
    found = _encoders.get((cls, version))
    if found is None:
        found = _encoders[cls, version] = _make_encoder(cls, version)
    return found


def _make_decoder(cls: type[Any], version: int) -> Decoder[Any]:
    schema = _standalone(cls)
    limit = REQUEST_OBJECT_COUNT_MAX if schema.kind is Kind.REQUEST else _TRUSTED_OBJECT_COUNT_MAX
    title = f"{schema.name} v{version}"
    written = DecoderSource(cls, shape_of(schema, version), title, limit)
    made: Decoder[Any] = _run(written.source(), written.namespace, f"<decoder of {title}>", "decode")
    return made


def _make_encoder(cls: type[Any], version: int) -> Callable[[Any], bytes]:
    schema = _standalone(cls)
    title = f"{schema.name} v{version}"
    written = EncoderSource(cls, shape_of(schema, version), title)
    made: Callable[[Any], bytes] = _run(written.source(), written.namespace, f"<encoder of {title}>", "encode")
    return made


def _standalone(cls: type[Any]) -> Schema:
    schema = schema_of(cls)
    if schema.kind is Kind.STRUCT:
        raise SchemaError(f"{schema.name} is a struct: it has no encoding outside its message")
    return schema


def _run(source: str, namespace: dict[str, Any], title: str, function: str) -> Any:
    exec(compile(source, title, "exec"), namespace)
    return namespace[function]
