"""JKS, Java's old key store format.

    magic FEEDFEED, version 2, count, then per entry: tag, alias, date, and
      tag 1, a private key: its protected bytes, the count of its chain, its certificates
      tag 2, a trusted certificate
    SHA-1 of the password, "Mighty Aphrodite" and all preceding bytes

A private key is protected by a key stream: SHA-1 of the password and the block before, beginning with a salt.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from typing import Final

from millbeck.security.tls import der

MAGIC: Final = b"\xfe\xed\xfe\xed"
_VERSIONS: Final = (1, 2)
_KEY_ENTRY: Final = 1
_CERTIFICATE_ENTRY: Final = 2
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"
_KEY_PROTECTOR: Final = "1.3.6.1.4.1.42.2.17.1.1"


class JksError(ValueError):
    """The store cannot be read; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JksKey:
    alias: str
    protected: bytes
    chain: tuple[bytes, ...]
    """The certificate chain as DER, the key's own certificate first."""

    def private_key(self, password: str) -> bytes:
        """The key as PKCS #8 DER. Raises `JksError` if the password is wrong."""
        try:
            fields = der.read_all(der.read_only(self.protected).content)
            algorithm = der.read_identifier(der.read_all(fields[0].content)[0])
            data = der.expect(fields[1], der.OCTET_STRING).content
        except (der.DerError, IndexError) as error:
            raise JksError(f"the private key {self.alias} is damaged") from error
        if algorithm != _KEY_PROTECTOR or len(data) <= 2 * _DIGEST_BYTES:
            raise JksError(f"the private key {self.alias} is protected with an algorithm that JKS stores do not use")
        secret = password.encode("utf-16-be", "surrogatepass")
        block, protected, check = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
        stream = bytearray()
        while len(stream) < len(protected):
            block = hashlib.sha1(secret + block).digest()
            stream += block
        size = len(protected)
        key = (int.from_bytes(protected, "big") ^ int.from_bytes(stream[:size], "big")).to_bytes(size, "big")
        if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
            raise JksError(f"the password of the private key {self.alias} is wrong")
        return key


@dataclass(frozen=True, slots=True, kw_only=True)
class JksStore:
    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]
    """The trusted certificates as DER."""


def read_jks(data: bytes, password: str | None) -> JksStore:
    """Read a store; without a password its integrity is not checked, as in Java. Raises `JksError`."""
    if len(data) < 12 + _DIGEST_BYTES or not data.startswith(MAGIC):
        raise JksError("it is not a JKS store, or it is truncated")
    if password is not None:
        secret = password.encode("utf-16-be", "surrogatepass")
        digest = hashlib.sha1(secret + _WHITENER + data[:-_DIGEST_BYTES]).digest()
        if not hmac.compare_digest(digest, data[-_DIGEST_BYTES:]):
            raise JksError("its password is wrong, or it is damaged")
    reader = _Reader(data[:-_DIGEST_BYTES], len(MAGIC))
    version = reader.number(4)
    if version not in _VERSIONS:
        raise JksError(f"JKS version {version} is not supported")
    keys: list[JksKey] = []
    trusted: list[bytes] = []
    for _ in range(reader.number(4)):
        tag, alias = reader.number(4), reader.text()
        reader.number(8)  # when it was made
        if tag == _KEY_ENTRY:
            protected = reader.block(4)
            chain = tuple([reader.certificate(version) for _ in range(reader.number(4))])
            keys.append(JksKey(alias=alias, protected=protected, chain=chain))
        elif tag == _CERTIFICATE_ENTRY:
            trusted.append(reader.certificate(version))
        else:
            raise JksError(f"the entry tag {tag} is unknown")
    return JksStore(keys=tuple(keys), trusted=tuple(trusted))


class _Reader:
    """A cursor over the store. Every read consumes bytes, so a false count in the data cannot cause a long loop."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def block(self, length_bytes: int) -> bytes:
        return self._take(self.number(length_bytes))

    def text(self) -> str:
        return self.block(2).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        kind = self.text() if version > 1 else "X.509"
        if kind not in ("X.509", "X509"):
            raise JksError(f"the certificate type {kind[:40]!r} is not supported")
        return self.block(4)

    def _take(self, size: int) -> bytes:
        end = self._position + size
        if end > len(self._data):
            raise JksError("it ends inside an entry")
        taken = self._data[self._position : end]
        self._position = end
        return taken
