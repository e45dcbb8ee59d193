"""Kerberos by the GSS-API: the interface of the machine's library. Its calls read files and may ask a KDC over the
network, so they must not run on the event loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class KerberosFailed(Exception):
    """The library refused a token, or has no usable credentials; the message is for the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KerberosLogin:
    """The source of a process's own credentials; without keytab and cache, the default ticket cache."""

    principal: str = ""
    """The own name, such as ``kafka/broker.example@EXAMPLE.COM``; empty for that of the ticket cache."""
    keytab: str = ""
    ticket_cache: str = ""


class KerberosContext(Protocol):
    """One authentication, on either side. Methods raise `KerberosFailed`."""

    @property
    def is_complete(self) -> bool:
        """Whether no further token is needed. Before that the other members must not be used."""

    @property
    def client(self) -> str:
        """The authenticated name of the client, such as ``alice@EXAMPLE.COM``."""

    def step(self, token: bytes) -> bytes:
        """Process the peer's token, empty to begin; returns the next one, empty if there is none."""

    def wrap(self, message: bytes) -> bytes:
        """Protect a message against changes."""

    def unwrap(self, wrapped: bytes) -> bytes:
        """The message of a peer, verified."""


class Kerberos(Protocol):
    """The library. Methods raise `KerberosFailed`."""

    def accept(self, login: KerberosLogin) -> KerberosContext:
        """The server's side of an authentication; the keytab has the server's keys."""

    def initiate(self, login: KerberosLogin, service: str, host: str) -> KerberosContext:
        """The client's side, for a service on a host."""

    def default_realm(self) -> str:
        """The realm of names without one; empty if none is configured."""

    def check_acceptor(self, login: KerberosLogin) -> None:
        """Check that the library is there, and that the keytab has a key for the principal."""
