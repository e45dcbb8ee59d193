"""Creates contexts of the ``ssl`` module from settings in memory.

Python loads private keys only from files. So key and chain are passed in an anonymous file in memory, which other
processes cannot open by name and which disappears when it is closed; on systems without such files, in a file that only
this user can read.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Iterator
from typing import Final

from millbeck.kernel.tls import PeerCertificate, TlsContext, TlsSettings, TlsUnusable

_VERSIONS: Final = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_VERIFY: Final = {
    PeerCertificate.NONE: ssl.CERT_NONE,
    PeerCertificate.REQUESTED: ssl.CERT_OPTIONAL,
    PeerCertificate.REQUIRED: ssl.CERT_REQUIRED,
}


def make_context(settings: TlsSettings) -> TlsContext:
    """A new context; one that is in use is never changed. Raises `TlsUnusable`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if settings.is_server else ssl.PROTOCOL_TLS_CLIENT)
    versions = [_VERSIONS[name] for name in settings.versions]
    context.minimum_version, context.maximum_version = min(versions), max(versions)
    # A client must not be able to request repeated handshakes on one TLS 1.2 connection.
    context.options |= ssl.OP_NO_RENEGOTIATION
    if settings.is_server:
        context.num_tickets = 1  # OpenSSL's two are for browsers; each is time in every handshake
    if settings.ciphers:
        with _named("ciphers"):
            context.set_ciphers(settings.ciphers)
    if settings.identity:
        with _named("identity"), _file_of(settings.identity) as path:
            # Without a password, OpenSSL would prompt for that of an encrypted key on the terminal.
            context.load_cert_chain(path, password=settings.key_password or "")
    _trust(context, settings)
    context.check_hostname = settings.checks_host_name and not settings.is_server
    context.verify_mode = _VERIFY[settings.peer_certificate]
    return TlsContext(context=context, has_slow_key=settings.has_slow_key)


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.trusted is not None:
        with _named("trusted"):
            context.load_verify_locations(cadata=settings.trusted)
        # As in Java, a trusted certificate need not be that of a certificate authority.
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    elif settings.peer_certificate is not PeerCertificate.NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH if settings.is_server else ssl.Purpose.SERVER_AUTH)
    if settings.revoked:
        with _named("revoked"), _file_of(settings.revoked) as path:
            context.load_verify_locations(cafile=path)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


@contextlib.contextmanager
def _named(part: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "reason", None)
        raise TlsUnusable(part, reason.lower().replace("_", " ") if reason else str(error)) from error


@contextlib.contextmanager
def _file_of(data: bytes) -> Iterator[str]:
    """The path of a file with this content, as long as the block runs."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("millbeck-tls", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
    else:
        with tempfile.NamedTemporaryFile() as file:  # only its owner may read it
            file.write(data)
            file.flush()
            yield file.name
