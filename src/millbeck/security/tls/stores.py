"""Reads key stores and trust stores in PEM, PKCS #12 and JKS format, detected by their first bytes.

Java also reads PKCS #12 when ``ssl.keystore.type`` is JKS, its default; so the configured type is not used here. PKCS
#12 needs the ``cryptography`` package, which the extra ``millbeck[security]`` installs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from millbeck.security.tls import jks, pem
from millbeck.security.tls.certificate import Certificate, in_order, parse_certificate
from millbeck.security.tls.der import DerError

if TYPE_CHECKING:
    from collections.abc import Iterable

STORE_BYTES_MAX: Final = 16 << 20
"""The maximum size of a store; a trust store with all public authorities has half a megabyte."""
CERTIFICATE: Final = "CERTIFICATE"
PRIVATE_KEY: Final = "PRIVATE KEY"
_JCEKS: Final = b"\xce\xce\xce\xce"
_DER_SEQUENCE: Final = b"\x30"


class StoreError(ValueError):
    """The store cannot be used; the message is a clause that fits after the name of the setting and a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEntry:
    """A private key and the certificate chain that belongs to it."""

    key: bytes
    """The key as PEM; if it is encrypted, `password` is set."""
    password: str | None
    chain: tuple[Certificate, ...]

    def pem(self) -> bytes:
        return self.key + b"".join(pem.encode(CERTIFICATE, each.der) for each in self.chain)


def read_key_store(data: bytes, *, store_password: str | None, key_password: str | None) -> KeyEntry:
    """The first private key of a store with its chain. Raises `StoreError`."""
    if data.startswith(jks.MAGIC):
        return _of_jks(data, store_password, key_password)
    if data.startswith(_DER_SEQUENCE):
        key, own, others = _load_pkcs12(data, store_password)
        if key is None or own is None:
            raise StoreError("the PKCS #12 store has no private key with a certificate")
        chain = in_order(_parsed([own, *others]))
        return KeyEntry(key=pem.encode(PRIVATE_KEY, key), password=None, chain=tuple(chain))
    _check_pem(data)
    return key_of_pem(data, data, key_password)


def key_of_pem(key: bytes, chain: bytes, password: str | None) -> KeyEntry:
    """A private key and its chain from PEM texts. Raises `StoreError`."""
    keys = pem.private_keys(key)
    if not keys:
        raise StoreError("it has no private key: it needs a block that begins with -----BEGIN PRIVATE KEY-----")
    if pem.is_encrypted(keys[0]) and password is None:
        raise StoreError("the private key is encrypted: set ssl.key.password")
    found = _parsed(_certificates(chain))
    if not found:
        raise StoreError("it has no certificate: it needs a block that begins with -----BEGIN CERTIFICATE-----")
    return KeyEntry(key=keys[0], password=password if pem.is_encrypted(keys[0]) else None, chain=tuple(found))


def read_trust_store(data: bytes, *, password: str | None) -> tuple[Certificate, ...]:
    """The trusted certificates of a store. Raises `StoreError`."""
    if data.startswith(jks.MAGIC):
        found = _parsed(_read_jks(data, password).trusted)
    elif data.startswith(_DER_SEQUENCE):
        _, own, others = _load_pkcs12(data, password)
        found = _parsed(others if own is None else [own, *others])
    else:
        _check_pem(data)
        found = _parsed(_certificates(data))
    if not found:
        raise StoreError("it has no certificate")
    return tuple(found)


def all_certificates(data: bytes, *, password: str | None) -> tuple[Certificate, ...]:
    """Every certificate of a key store or trust store, without its keys. Raises `StoreError`."""
    if data.startswith(jks.MAGIC):
        store = _read_jks(data, password)
        return tuple(_parsed([*(each for key in store.keys for each in key.chain), *store.trusted]))
    return read_trust_store(data, password=password)


def _check_pem(data: bytes) -> None:
    if data.startswith(_JCEKS):
        raise StoreError("it is a JCEKS store: convert it with keytool -importkeystore -deststoretype PKCS12")
    if b"-----BEGIN " not in data:
        raise StoreError("it is empty" if not data.strip() else "it is neither PEM nor a PKCS #12 or JKS store")


def _certificates(data: bytes) -> list[bytes]:
    try:
        return pem.certificates(data)
    except ValueError as error:
        raise StoreError(str(error)) from error


def _parsed(certificates: Iterable[bytes]) -> list[Certificate]:
    try:
        return [parse_certificate(each) for each in certificates]
    except DerError as error:
        raise StoreError(f"a certificate in it cannot be read: {error}") from error


def _read_jks(data: bytes, password: str | None) -> jks.JksStore:
    try:
        return jks.read_jks(data, password)
    except jks.JksError as error:
        raise StoreError(str(error)) from error


def _of_jks(data: bytes, store_password: str | None, key_password: str | None) -> KeyEntry:
    store = _read_jks(data, store_password)
    if not store.keys:
        raise StoreError("there is no private key in the JKS store")
    first = store.keys[0]
    password = store_password if key_password is None else key_password
    if password is None:
        raise StoreError("the private key of a JKS store is protected: set ssl.keystore.password")
    try:
        key = first.private_key(password)
    except jks.JksError as error:
        raise StoreError(str(error)) from error
    chain = _parsed(first.chain)
    if not chain:
        raise StoreError(f"the private key {first.alias} has no certificate")
    return KeyEntry(key=pem.encode(PRIVATE_KEY, key), password=None, chain=tuple(chain))


def _load_pkcs12(data: bytes, password: str | None) -> tuple[bytes | None, bytes | None, list[bytes]]:
    """The private key as PKCS #8, its certificate, and the others, all DER."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise StoreError(
            "it is a PKCS #12 store, which needs the cryptography package: pip install 'millbeck[security]', or "
            "convert it to PEM"
        ) from error
    try:
        key, own, others = pkcs12.load_key_and_certificates(data, None if password is None else password.encode())
    except Exception as error:  # its parser reports some kinds of damage by other types than ValueError
        raise StoreError(
            "it is not a PKCS #12 store that can be read: its password is wrong, or it is damaged"
        ) from error
    encoding: Any = serialization.Encoding.DER
    return (
        None
        if key is None
        else key.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
        None if own is None else own.public_bytes(encoding),
        [each.public_bytes(encoding) for each in others],
    )
