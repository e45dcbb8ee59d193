"""Principals: the identities of clients."""

from __future__ import annotations

from dataclasses import dataclass, field

USER_TYPE = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """An identity as named in ACLs: ``User:alice``. ``is_token`` is True if it authenticated with a delegation
    token."""

    type: str
    name: str
    is_token: bool = False
    text: str = field(init=False, repr=False, compare=False)
    """The name in ACLs, computed once because every decision needs it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", f"{self.type}:{self.name}")

    def __str__(self) -> str:
        return self.text


ANONYMOUS = Principal(USER_TYPE, "ANONYMOUS")
"""The principal of an unauthenticated client."""


class NoPrincipal(Exception):
    """The client's certificate gives no principal; the message has the reason."""


def stored_principal(text: str) -> Principal:
    """The principal of a metadata record, where the name may be empty, as Kafka writes it."""
    kind, _, name = text.partition(":")
    return Principal(kind, name)


def parse_principal(text: str) -> Principal:
    """Parse ``type:name``, the inverse of ``str(principal)``; raises ValueError if malformed or if either part is
    empty."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"expected a principal written as type:name, such as User:alice, but got {text!r}")
    return Principal(kind, name)
