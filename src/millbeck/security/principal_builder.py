"""The seam of principals: code of a deployment decides which principal a client is that has proved who it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from millbeck.security.principal import NoPrincipal, Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """What is known of a client."""

    principal: Principal
    """Its principal without a builder."""
    listener: str
    host: str
    mechanism: str = ""
    """The SASL mechanism by which it has logged in; empty without a login."""
    login: str = ""
    """With SASL, the name that it has sent: a user, the id of a delegation token, or the whole Kerberos name."""
    certificate: bytes | None = field(default=None, repr=False)
    """Its verified certificate as DER; None without one."""


class PrincipalBuilder(Protocol):
    def build(self, identity: ClientIdentity) -> Principal:
        """The client's principal. Must not wait; any exception refuses the client."""


class GuardedPrincipalBuilder:
    """Wraps a builder of the deployment: where it fails, the client is refused."""

    def __init__(self, builder: PrincipalBuilder, on_failure: Callable[[Exception], None]) -> None:
        self._builder = builder
        self._on_failure = on_failure

    def build(self, identity: ClientIdentity) -> Principal:
        """Raises `NoPrincipal`. A client of a delegation token stays one."""
        try:
            built = self._builder.build(identity)
            if not isinstance(built, Principal) or not built.type or not built.name:
                raise TypeError(f"{built!r} is not a principal with a type and a name")
        except NoPrincipal:
            raise
        except Exception as error:
            self._on_failure(error)
            raise NoPrincipal("principal.builder.class has failed") from error
        return replace(built, is_token=identity.principal.is_token)
