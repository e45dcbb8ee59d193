"""The notations of listeners: addresses, the map of protocols, limits by address. All raise `InvalidConfig`."""

from __future__ import annotations

from collections.abc import Mapping

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config.sections.listeners import PROTOCOLS_KNOWN
from millbeck.server.listener import ListenerAddress

PORT_MAX = 65535
WILDCARD_HOSTS = ("", "0.0.0.0", "::")
"""Every interface: nobody can connect to that."""
_PORT_DIGITS_MAX = 5


def parse_address(text: str, protocol_map: Mapping[str, str], setting: str = "listeners") -> ListenerAddress:
    """One ``NAME://host:port``; an IPv6 host may stand in brackets."""
    name, separator, rest = text.strip().partition("://")
    host, colon, port = rest.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= _PORT_DIGITS_MAX and int(port) <= PORT_MAX
    if not separator or not colon or not name or not is_port:
        raise InvalidConfig(f"{setting}: {text!r} is not NAME://host:port")
    name = name.upper()
    protocol = protocol_map.get(name)
    if protocol is None:
        raise InvalidConfig(f"{setting}: listener {name} has no entry in listener.security.protocol.map")
    return ListenerAddress(name=name, host=host.strip("[]"), port=int(port), protocol=protocol)


def parse_protocol_map(text: str) -> dict[str, str]:
    """Listener names to protocols, of ``NAME:PROTOCOL,...``."""
    pairs: dict[str, str] = {}
    for entry in _entries(text):
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not colon or not name or protocol not in PROTOCOLS_KNOWN:
            raise InvalidConfig(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with one of "
                f"{', '.join(PROTOCOLS_KNOWN)}"
            )
        pairs[name] = protocol
    return pairs


def parse_ip_overrides(text: str) -> dict[str, int]:
    """Connection limits by address, of ``address:count,...``."""
    overrides: dict[str, int] = {}
    for entry in _entries(text):
        host, colon, count = entry.rpartition(":")
        if not colon or not host or not (count.isascii() and count.isdigit()):
            raise InvalidConfig(f"max.connections.per.ip.overrides: {entry!r} is not address:count")
        overrides[host] = int(count)
    return overrides


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]
