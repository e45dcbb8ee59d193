"""TLS settings and results: the settings of contexts for new connections, and the failures of handshakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


class PeerCertificate(Enum):
    """Whether the peer must present a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The settings of a TLS context, with the contents of all files it needs."""

    is_server: bool
    versions: tuple[str, ...] = TLS_VERSIONS
    ciphers: str = ""
    """The cipher suites of TLS 1.2 as an OpenSSL list; "" means its default."""
    identity: bytes = b""
    """The private key and then the certificate chain, as PEM; empty for none."""
    key_password: str | None = None
    has_slow_key: bool = False
    trusted: bytes | None = None
    """The trusted certificates as DER, one after the other; None for the system's."""
    revoked: bytes = b""
    """Certificate revocation lists, as PEM; if there are any, there must be one of the peer's issuer."""
    peer_certificate: PeerCertificate = PeerCertificate.REQUIRED
    checks_host_name: bool = True
    """For a client: whether the server's certificate must match the host name of the connection."""


class TlsUnusable(ValueError):
    """The settings are not usable for a context; ``part`` is the name of the invalid field."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(message)
        self.part = part


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsContext:
    context: ssl.SSLContext
    has_slow_key: bool = False
    """Whether a signature with the private key takes milliseconds, as with RSA keys above 2048 bits: its handshakes
    are done on worker threads.
    """


TlsSource = Callable[[], TlsContext]
"""Returns the context for a new connection, which keeps it. To replace a certificate, it returns a new context."""


class TlsFailure(Enum):
    """The reason why a TLS connection failed; the values are labels of a metric."""

    NOT_TLS = "not_tls"
    CERTIFICATE = "certificate"
    TIMEOUT = "timeout"
    DISCONNECTED = "disconnected"
    REFUSED_BY_PEER = "refused_by_peer"
    PROTOCOL = "protocol"


class TlsFailed(ConnectionError):
    """The TLS handshake or a TLS record failed; the message is a clause that fits after a colon."""

    def __init__(self, failure: TlsFailure, message: str) -> None:
        super().__init__(message)
        self.failure = failure
