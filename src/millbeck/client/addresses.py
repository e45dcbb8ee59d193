"""``bootstrap.servers``: host and port pairs, with IPv6 literals in brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from millbeck.kernel.errors import InvalidConfig

_PORT_MAX = 65535
_BRACKETED = re.compile(r"(?:[A-Za-z_]+://)?\[([0-9A-Fa-f:.]+(?:%[\w.-]+)?)\]:([0-9]{1,5})")
_PLAIN = re.compile(r"(?:[A-Za-z_]+://)?([^\s:/\[\]]+):([0-9]{1,5})")


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """``host:port`` or ``[v6]:port``, with or without a protocol in front; raises `InvalidConfig`."""
    found = _BRACKETED.fullmatch(text) or _PLAIN.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _PORT_MAX:
        hint = "; an IPv6 address stands in brackets, as in [::1]:9092" if text.count(":") > 1 else ""
        raise InvalidConfig(f"bootstrap.servers: {text[:80]!r} is not host:port{hint}")
    return Address(found[1], int(found[2]))


def parse_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Every address once, in the order given; at least one. Raises `InvalidConfig`."""
    addresses = tuple(dict.fromkeys(parse_address(text) for text in texts if text))
    if not addresses:
        raise InvalidConfig("bootstrap.servers is empty: give at least one host:port")
    return addresses
