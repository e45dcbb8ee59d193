"""Parser of PEM text: the blocks between ``-----BEGIN …-----`` and ``-----END …-----``."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Final

_BEGIN: Final = b"-----BEGIN "
_END: Final = b"-----END "
_DASHES: Final = b"-----"
_LABEL_BYTES_MAX: Final = 64
_LINE: Final = 64
_CERTIFICATES: Final = ("CERTIFICATE", "X509 CERTIFICATE")


def blocks(data: bytes) -> Iterator[tuple[str, bytes]]:
    """The label and the whole text of each block; text between blocks is ignored."""
    position = data.find(_BEGIN)
    while position >= 0:
        start = position + len(_BEGIN)
        label_end = data.find(_DASHES, start, start + _LABEL_BYTES_MAX)
        label = data[start:label_end]
        last = _END + label + _DASHES
        end = data.find(last, label_end) if label_end > start else -1
        if end < 0:
            return  # the rest is an incomplete block
        yield label.decode("ascii", "replace"), data[position : end + len(last)] + b"\n"
        position = data.find(_BEGIN, end)


def certificates(data: bytes) -> list[bytes]:
    """The certificates as DER. Raises ValueError."""
    return [_decode(text) for label, text in blocks(data) if label in _CERTIFICATES]


def private_keys(data: bytes) -> list[bytes]:
    """The text of each private key, with the line breaks that OpenSSL needs and a properties file may lack."""
    return [_with_lines(label, text) for label, text in blocks(data) if label.endswith("PRIVATE KEY")]


def is_encrypted(key: bytes) -> bool:
    return b"BEGIN ENCRYPTED" in key or b"Proc-Type: 4,ENCRYPTED" in key


def encode(label: str, der: bytes) -> bytes:
    return _in_lines(label, base64.b64encode(der))


def _in_lines(label: str, text: bytes) -> bytes:
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return b"-----BEGIN %s-----\n%s\n-----END %s-----\n" % (label.encode(), b"\n".join(lines), label.encode())


def _with_lines(label: str, block: bytes) -> bytes:
    if b"Proc-Type:" in block:
        return block  # its headers and the empty line behind them are part of it
    return _in_lines(label, _base64(block))


def _base64(block: bytes) -> bytes:
    """The base64 content of a block, without blanks and line breaks."""
    return b"".join(block.split(_DASHES)[2].split())


def _decode(block: bytes) -> bytes:
    try:
        return base64.b64decode(_base64(block), validate=True)
    except binascii.Error as error:
        raise ValueError(f"a certificate's base64 cannot be decoded: {error}") from error
