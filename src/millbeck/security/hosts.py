"""Addresses of clients, compared as addresses: ``::1`` and ``0:0:0:0:0:0:0:1`` are the same host."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network


def canonical_host(host: str) -> str:
    """One text for all spellings of an IP address; any other text unchanged.

    An IPv4 address inside an IPv6 one (``::ffff:10.0.0.1``) is that IPv4 address, and the zone of a link-local address
    (``fe80::1%eth0``) is left out, since it means something on one machine only.
    """
    if ":" not in host:
        return host
    # Imported late: most nodes never see an IPv6 address.
    from ipaddress import IPv6Address

    try:
        address = IPv6Address(host.partition("%")[0])
    except ValueError:
        return host
    return str(address.ipv4_mapped or address)


class Networks:
    """The networks from which clients may connect, such as ``10.0.0.0/8`` or ``2001:db8::/32``, or single addresses."""

    def __init__(self, texts: Iterable[str]) -> None:
        """Parse networks; raises ``ValueError`` for a text that is not a network."""
        from ipaddress import ip_network

        self._networks: tuple[IPv4Network | IPv6Network, ...] = tuple(ip_network(text.strip()) for text in texts)

    def __contains__(self, host: object) -> bool:
        from ipaddress import ip_address

        try:
            address = ip_address(canonical_host(str(host)).partition("%")[0])
        except ValueError:
            return False
        return any(address in network for network in self._networks)


def are_networks(texts: Iterable[str]) -> bool:
    """Whether these texts are valid for `Networks`."""
    try:
        Networks(texts)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether an address, or the name localhost, can be reached from its own machine only."""
    return host == "localhost" or host in Networks(("127.0.0.0/8", "::1"))
