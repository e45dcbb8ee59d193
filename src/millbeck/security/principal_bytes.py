"""Encodes principals in the requests that brokers forward to a controller."""

from __future__ import annotations

from struct import Struct
from struct import error as StructError  # noqa: N812
from typing import Final

from millbeck.security.principal import Principal
from millbeck.wire.codec import decoder, encoder
from millbeck.wire.errors import DecodeError
from millbeck.wire.schema import Kind, boolean, message, string

VERSION: Final = 0
_VERSION: Final = Struct(">h")


@message(kind=Kind.DATA, versions="0", flexible="0+")
class EncodedPrincipal:
    """The encoded fields; later versions may only add tagged ones."""

    type: str = string()
    name: str = string()
    token_authenticated: bool = boolean()


def encode_principal(principal: Principal) -> bytes:
    content = EncodedPrincipal(principal.type, principal.name, principal.is_token)
    return _VERSION.pack(VERSION) + encoder(EncodedPrincipal, VERSION)(content)


def decode_principal(data: bytes) -> Principal:
    """Decode a principal; raises `DecodeError`."""
    try:
        (version,) = _VERSION.unpack_from(data)
    except StructError as error:
        raise DecodeError(f"principal: {error}") from None
    if version != VERSION:
        raise DecodeError(f"unsupported principal version {version}; supported is {VERSION}")
    content, _ = decoder(EncodedPrincipal, VERSION)(data, _VERSION.size)
    return Principal(content.type, content.name, content.token_authenticated)
