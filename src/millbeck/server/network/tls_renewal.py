"""Checks of a new certificate before it replaces the one in use, so that a mistake in a file does not disconnect a
node."""

from __future__ import annotations

import ssl
from dataclasses import replace
from typing import Final

from millbeck.kernel.environment import Network
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.tls import PeerCertificate, TlsContext
from millbeck.security.tls.certificate import Certificate
from millbeck.server.config import SslOptions
from millbeck.server.network.tls import LoadedTls

_FLIGHTS_MAX: Final = 8


def check_dates(certificates: tuple[Certificate, ...], now_ms: int) -> None:
    """Raise `InvalidConfig` if a certificate of the chain is not valid now."""
    for certificate in certificates:
        if certificate.not_after_ms <= now_ms:
            raise InvalidConfig(f"the certificate of {certificate.subject} has expired")
        if certificate.not_before_ms > now_ms:
            raise InvalidConfig(f"the certificate of {certificate.subject} is not valid yet")


def check_same_owner(old: Certificate, new: Certificate, options: SslOptions) -> None:
    """Raise `InvalidConfig` if the new certificate has another subject or lacks a host name of the old one, unless that
    is allowed.
    """
    if not options.ssl_allow_dn_changes and new.subject != old.subject:
        raise InvalidConfig(
            f"the certificate's name would change from {old.subject} to {new.subject}: set ssl.allow.dn.changes=true "
            "to allow that"
        )
    missing = sorted(old.alternative_names - new.alternative_names)
    if not options.ssl_allow_san_changes and missing:
        raise InvalidConfig(
            f"the certificate would no longer be for {', '.join(missing)}: set ssl.allow.san.changes=true to allow that"
        )


def check_trusted_by_itself(loaded: LoadedTls, network: Network) -> None:
    """Raise `InvalidConfig` if nodes with these settings would not accept each other's certificates."""
    settings = loaded.material.settings
    if loaded.material.trusted is None or not settings.identity:
        return
    both = replace(settings, peer_certificate=PeerCertificate.REQUIRED, checks_host_name=False)
    server = network.tls_context(replace(both, is_server=True))
    client = network.tls_context(replace(both, is_server=False))
    try:
        _shake_hands(server, client)
    except ssl.SSLError as error:
        reason = getattr(error, "verify_message", "") or error.reason or str(error)
        raise InvalidConfig(
            f"the certificate of {loaded.material.own.chain[0].subject if loaded.material.own else 'this node'} is not "
            f"trusted by the node's own truststore: {reason}"
        ) from error


def _shake_hands(server: TlsContext, client: TlsContext) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.context.wrap_bio(to_client, to_server, server_hostname="node"),
        server.context.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_FLIGHTS_MAX):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            sides.remove(side)
        if not sides:
            return
    raise ssl.SSLError("the handshake did not end")
