"""Loads the keys, certificates and revocation lists that the ``ssl.*`` settings of a listener or client name.

`StoreFiles` remembers the content of the files it has read, to detect changes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.tls import TLS_VERSIONS, PeerCertificate, TlsContext, TlsSettings, TlsUnusable
from millbeck.kernel.whole_file import read_whole_file
from millbeck.security.tls.cipher_suites import openssl_ciphers
from millbeck.security.tls.stores import (
    STORE_BYTES_MAX,
    KeyEntry,
    StoreError,
    key_of_pem,
    read_key_store,
    read_trust_store,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from millbeck.kernel.environment import Files
    from millbeck.kernel.options import Secret
    from millbeck.security.tls.certificate import Certificate

CRL_BEGIN: Final = b"-----BEGIN X509 CRL-----"


class TlsOptions(Protocol):
    """The options that listeners and clients have in common."""

    ssl_keystore_location: str | None
    ssl_keystore_password: Secret | None
    ssl_key_password: Secret | None
    ssl_keystore_key: Secret | None
    ssl_keystore_certificate_chain: Secret | None
    ssl_truststore_location: str | None
    ssl_truststore_password: Secret | None
    ssl_truststore_certificates: Secret | None
    ssl_crl_location: str | None
    ssl_enabled_protocols: tuple[str, ...]
    ssl_cipher_suites: tuple[str, ...]


class StoreFiles:
    """Reads files and remembers their content, to detect changes."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._read: dict[str, bytes | None] = {}

    def read(self, path: str, setting: str) -> bytes:
        """Read a file; raises `InvalidConfig` with its path if that fails."""
        self._read[path] = None
        try:
            data = self._content(path)
        except OSError as error:
            raise InvalidConfig(f"{setting}: {path} is not usable: {error.strerror or error}") from error
        self._read[path] = data
        return data

    def changed(self) -> bool:
        """Whether the content of a file has changed since it was read. It blocks, so run it on a thread."""
        return any(self._content_if_any(path) != before for path, before in list(self._read.items()))

    def _content_if_any(self, path: str) -> bytes | None:
        try:
            return self._content(path)
        except OSError:
            return None

    def _content(self, path: str) -> bytes:
        return read_whole_file(self._files, path, bytes_max=STORE_BYTES_MAX)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsMaterial:
    """The keys and certificates of one listener or client, loaded from its settings."""

    own: KeyEntry | None
    trusted: tuple[Certificate, ...] | None
    """The trusted certificates; None means the system's."""
    settings: TlsSettings

    @property
    def certificate(self) -> Certificate | None:
        return None if self.own is None else self.own.chain[0]


def read_material(
    options: TlsOptions,
    files: StoreFiles,
    *,
    is_server: bool,
    peer_certificate: PeerCertificate = PeerCertificate.REQUIRED,
    checks_host_name: bool = True,
) -> TlsMaterial:
    """Load the keys and certificates of the settings. Raises `InvalidConfig` naming the setting."""
    own = _own(options, files)
    trusted = None
    if peer_certificate is not PeerCertificate.NONE:
        trusted = _trusted(options, files)
    versions = options.ssl_enabled_protocols
    unknown = [name for name in versions if name not in TLS_VERSIONS]
    if unknown or not versions:
        raise InvalidConfig(f"ssl.enabled.protocols: supported versions are {' and '.join(TLS_VERSIONS)}")
    revoked = b""
    if options.ssl_crl_location and peer_certificate is not PeerCertificate.NONE:
        revoked = files.read(options.ssl_crl_location, "millbeck.ssl.crl.location")
        if CRL_BEGIN not in revoked:
            raise InvalidConfig(
                f"millbeck.ssl.crl.location: {options.ssl_crl_location} has no revocation list in PEM form, which "
                f"begins with {CRL_BEGIN.decode()}"
            )
    settings = TlsSettings(
        is_server=is_server,
        versions=versions,
        ciphers=openssl_ciphers(options.ssl_cipher_suites),
        identity=b"" if own is None else own.pem(),
        key_password=None if own is None else own.password,
        has_slow_key=own is not None and own.chain[0].has_slow_key,
        trusted=None if trusted is None else b"".join(each.der for each in trusted),
        revoked=revoked,
        peer_certificate=peer_certificate,
        checks_host_name=checks_host_name,
    )
    return TlsMaterial(own=own, trusted=trusted, settings=settings)


_SETTINGS: Final = {
    "identity": ("ssl.keystore.location", "ssl.keystore.key"),
    "trusted": ("ssl.truststore.location", "ssl.truststore.certificates"),
    "revoked": ("millbeck.ssl.crl.location", ""),
    "ciphers": ("ssl.cipher.suites", ""),
}
"""For each part: the option with the path of a file, and the option with the text itself."""


def make_usable(material: TlsMaterial, options: TlsOptions, make: Callable[[TlsSettings], TlsContext]) -> TlsContext:
    """Create the TLS context. Raises `InvalidConfig` naming the setting."""
    try:
        return make(material.settings)
    except TlsUnusable as error:
        located, inline = _SETTINGS[error.part]
        path = {
            "identity": options.ssl_keystore_location,
            "trusted": options.ssl_truststore_location,
            "revoked": options.ssl_crl_location,
        }.get(error.part)
        subject = f"{located}: {path}" if path else inline or located
        hint = "; is ssl.key.password right?" if error.part == "identity" and material.settings.key_password else ""
        raise InvalidConfig(f"{subject} is not usable: {error}{hint}") from error


def _own(options: TlsOptions, files: StoreFiles) -> KeyEntry | None:
    key, chain = _text(options.ssl_keystore_key), _text(options.ssl_keystore_certificate_chain)
    location = options.ssl_keystore_location
    password = _text(options.ssl_key_password)
    if key is not None:
        if location:
            raise InvalidConfig("ssl.keystore.key and ssl.keystore.location are both set: remove one of them")
        if chain is None:
            raise InvalidConfig("ssl.keystore.key is set without ssl.keystore.certificate.chain")
        try:
            return key_of_pem(key.encode(), chain.encode(), password)
        except StoreError as error:
            raise InvalidConfig(f"ssl.keystore.key and ssl.keystore.certificate.chain: {error}") from error
    if chain is not None:
        raise InvalidConfig("ssl.keystore.certificate.chain is set without ssl.keystore.key")
    if not location:
        return None
    data = files.read(location, "ssl.keystore.location")
    try:
        return read_key_store(data, store_password=_text(options.ssl_keystore_password), key_password=password)
    except StoreError as error:
        raise InvalidConfig(f"ssl.keystore.location: {location} is not usable: {error}") from error


def _trusted(options: TlsOptions, files: StoreFiles) -> tuple[Certificate, ...] | None:
    inline, location = _text(options.ssl_truststore_certificates), options.ssl_truststore_location
    password = _text(options.ssl_truststore_password)
    if inline is not None:
        if location:
            raise InvalidConfig(
                "ssl.truststore.certificates and ssl.truststore.location are both set: remove one of them"
            )
        data, subject = inline.encode(), "ssl.truststore.certificates"
    elif location:
        data, subject = files.read(location, "ssl.truststore.location"), f"ssl.truststore.location: {location}"
    else:
        return None
    try:
        return read_trust_store(data, password=password)
    except StoreError as error:
        raise InvalidConfig(f"{subject} is not usable: {error}") from error


def _text(secret: Secret | None) -> str | None:
    return secret.reveal() if secret is not None and secret.reveal().strip() else None
