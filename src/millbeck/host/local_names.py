"""The names and addresses of this machine, for the certificates of its nodes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_INTERFACES_IPV6: Final = "/proc/net/if_inet6"
_ROUTES_IPV4: Final = "/proc/net/fib_trie"
_HOST_NAME_MAX: Final = 253


def local_names() -> list[str]:
    """Host names and addresses, loopback first, each once. Does not query a name server."""
    name = socket.gethostname()
    found = dict.fromkeys(LOOPBACK)
    if 0 < len(name) <= _HOST_NAME_MAX and name.isascii():
        found[name] = None
        found[name.partition(".")[0]] = None
    found |= dict.fromkeys(sorted({*_linux_addresses(), *_route_addresses()}))
    return list(found)


def _linux_addresses() -> Iterator[str]:
    """The addresses of all interfaces; none on other systems."""
    try:
        with open(_ROUTES_IPV4, encoding="ascii") as file:
            lines = file.read().splitlines()
        for address, kind in pairwise(lines):
            if kind.strip() == "/32 host LOCAL":
                yield address.split()[-1]
        with open(_INTERFACES_IPV6, encoding="ascii") as file:
            for line in file:
                digits = line.split()[0]
                address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(digits))
                # Link-local addresses mean nothing without the interface, which a certificate cannot name.
                if not address.startswith("fe80"):
                    yield address
    except (OSError, ValueError, IndexError):
        return


def _route_addresses() -> Iterator[str]:
    """The source address of outgoing connections, found by connecting a datagram socket, which sends nothing."""
    for family, elsewhere in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((elsewhere, 9))
                yield probe.getsockname()[0]
        except OSError:
            continue
