"""Kerberos by the package ``gssapi`` and the machine's libraries; imported on first use.

Tickets obtained with a keytab are kept in memory, one cache for each login, and renewed by the library.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any, Final

from millbeck.kernel.kerberos import KerberosContext, KerberosFailed, KerberosLogin

_INSTALL: Final = "GSSAPI needs pip install 'millbeck[kerberos]'"
_ANY_NAME: Final = "realm-of"
_SAYS_NOTHING: Final = ("Unknown error", "Unspecified GSS failure")


class HostKerberos:
    def accept(self, login: KerberosLogin) -> KerberosContext:
        with _failures() as gssapi:
            return _Context(gssapi, gssapi.SecurityContext(creds=self._acceptor(gssapi, login), usage="accept"))

    def initiate(self, login: KerberosLogin, service: str, host: str) -> KerberosContext:
        with _failures() as gssapi:
            target = gssapi.Name(f"{service}@{host}", gssapi.NameType.hostbased_service)
            credentials = self._initiator(gssapi, login)
            flags = gssapi.RequirementFlag.mutual_authentication | gssapi.RequirementFlag.integrity
            kerberos = gssapi.MechType.kerberos
            return _Context(
                gssapi,
                gssapi.SecurityContext(name=target, creds=credentials, usage="initiate", mech=kerberos, flags=flags),
            )

    def default_realm(self) -> str:
        try:
            with _failures() as gssapi:
                name = gssapi.Name(_ANY_NAME, gssapi.NameType.kerberos_principal)
                return str(name.canonicalize(gssapi.MechType.kerberos)).removeprefix(f"{_ANY_NAME}@")
        except KerberosFailed:
            return ""

    def check_acceptor(self, login: KerberosLogin) -> None:
        with _failures() as gssapi:
            self._acceptor(gssapi, login)

    def _acceptor(self, gssapi: Any, login: KerberosLogin) -> Any:
        return gssapi.Credentials(
            usage="accept",
            name=_principal(gssapi, login.principal),
            store={"keytab": login.keytab},
            mechs=[gssapi.MechType.kerberos],
        )

    def _initiator(self, gssapi: Any, login: KerberosLogin) -> Any:
        store = {}
        if login.keytab:
            # The names of caches are those of the whole process, which may have other users of them.
            name = hashlib.sha256(f"{login.principal} {login.keytab}".encode()).hexdigest()
            store = {"client_keytab": login.keytab, "ccache": f"MEMORY:millbeck-{name}"}
        elif login.ticket_cache:
            store = {"ccache": login.ticket_cache}
        return gssapi.Credentials(
            usage="initiate",
            name=_principal(gssapi, login.principal),
            store=store or None,
            mechs=[gssapi.MechType.kerberos],
        )


class _Context:
    def __init__(self, gssapi: Any, context: Any) -> None:
        self._gssapi = gssapi
        self._context = context

    @property
    def is_complete(self) -> bool:
        return bool(self._context.complete)

    @property
    def client(self) -> str:
        with _failures():
            return str(self._context.initiator_name)

    def step(self, token: bytes) -> bytes:
        with _failures():
            answer: bytes = self._context.step(token or None) or b""
            if self._context.complete:
                self._check()
            return answer

    def _check(self) -> None:
        context, gssapi = self._context, self._gssapi
        if context.mech != gssapi.MechType.kerberos:
            raise KerberosFailed("another mechanism than Kerberos was used")
        if gssapi.RequirementFlag.anonymity in context.actual_flags:
            raise KerberosFailed("the client is anonymous")

    def wrap(self, message: bytes) -> bytes:
        with _failures():
            wrapped: bytes = self._context.wrap(message, False).message
            return wrapped

    def unwrap(self, wrapped: bytes) -> bytes:
        with _failures():
            message: bytes = self._context.unwrap(wrapped).message
            return message


def _principal(gssapi: Any, name: str) -> Any:
    return gssapi.Name(name, gssapi.NameType.kerberos_principal) if name else None


@contextlib.contextmanager
def _failures() -> Iterator[Any]:
    """The package, with its errors turned into `KerberosFailed`."""
    try:
        import gssapi
    except (ImportError, OSError) as error:  # without the system's library the package raises OSError
        raise KerberosFailed(_INSTALL) from error
    try:
        yield gssapi
    except gssapi.exceptions.GSSError as error:
        raise KerberosFailed(_reason(error)) from error


def _reason(error: Any) -> str:
    """The library's messages, without their numbers: first the general ones, then those of Kerberos."""
    texts = []
    for code, is_major in ((error.maj_code, True), (error.min_code, False)):
        with contextlib.suppress(Exception):  # a code without a text
            texts += [each.strip() for each in error.get_all_statuses(code, is_major)]
    said = [text for text in dict.fromkeys(texts) if text and not text.startswith(_SAYS_NOTHING)]
    return ": ".join(said) or str(error)
