"""What the network is told about TLS, and what it reports: contexts for new connections, and failed handshakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import ssl

TLS_VERSIONS: Final = ("TLSv1.2", "TLSv1.3")


class PeerCertificate(Enum):
    """What is asked of the peer."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Everything that makes a context, read from wherever it is kept."""

    is_server: bool
    versions: tuple[str, ...] = TLS_VERSIONS
    ciphers: str = ""
    """OpenSSL's list of suites of TLS 1.2; "" for its default."""
    identity: bytes = b""
    """The private key and then the certificate chain, as PEM; empty for none."""
    key_password: str | None = None
    has_slow_key: bool = False
    trusted: bytes | None = None
    """The trusted certificates as DER, one after the other; None for the system's."""
    revoked: bytes = b""
    """Certificate revocation lists, as PEM; if there are any, the peer's issuer must be covered by one."""
    peer_certificate: PeerCertificate = PeerCertificate.REQUIRED
    checks_host_name: bool = True
    """For a client: the server's certificate must be for the host that was connected to."""


class TlsUnusable(ValueError):
    """These settings make no context; ``part`` is the name of the field at fault."""

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
"""Called for each new connection, which keeps what it gets. Replacing a certificate means returning a new context."""


class TlsFailure(Enum):
    """Why a TLS connection failed; the values are labels of a metric."""

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
