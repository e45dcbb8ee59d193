"""Parser of ``bootstrap.servers``: host:port pairs, with IPv6 addresses in brackets; the default port is 9092."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from millbeck.kernel.errors import InvalidConfig

DEFAULT_PORT = 9092
_PORT_MAX = 65535
_BRACKETED = re.compile(r"(?:[A-Za-z_]+://)?\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\](?::([0-9]{1,5}))?")
_PLAIN = re.compile(r"(?:[A-Za-z_]+://)?([^\s:/\[\]]+)(?::([0-9]{1,5}))?")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Parse ``host``, ``host:port``, ``[v6]`` or ``[v6]:port``, optionally with a protocol prefix; raises
    `InvalidConfig`."""
    found = _BRACKETED.fullmatch(text) or _PLAIN.fullmatch(text)
    # A number alone is a port without its host; as a host it would be an address that nobody means.
    if found is None or not 0 < int(found[2] or DEFAULT_PORT) <= _PORT_MAX or (found[2] is None and found[1].isdigit()):
        hint = "; put an IPv6 address in brackets, as in [::1]:9092" if text.count(":") > 1 else ""
        raise InvalidConfig(f"bootstrap.servers: {text[:80]!r} is not host:port{hint}")
    return Address(found[1], int(found[2] or DEFAULT_PORT))


def parse_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Parse all addresses, without duplicates, in the given order; at least one. Raises `InvalidConfig`."""
    addresses = tuple(dict.fromkeys(parse_address(text) for text in texts if text))
    if not addresses:
        raise InvalidConfig("bootstrap.servers is empty: give at least one host:port")
    return addresses
