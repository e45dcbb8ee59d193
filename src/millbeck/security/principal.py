"""Who is asking."""

from __future__ import annotations

from dataclasses import dataclass

USER_TYPE = "User"


@dataclass(frozen=True, slots=True)
class Principal:
    """An identity as ACLs name it: ``User:alice``. ``is_token`` tells that a delegation token stood in for it."""

    type: str
    name: str
    is_token: bool = False

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER_TYPE, "ANONYMOUS")
"""Whoever did not have to say who it is."""


def parse_principal(text: str) -> Principal:
    """The inverse of ``str(principal)``; raises ValueError unless it is ``type:name`` with neither of them empty."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"expected a principal written as type:name, such as User:alice, but got {text!r}")
    return Principal(kind, name)
