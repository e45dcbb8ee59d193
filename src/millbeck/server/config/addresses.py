"""Parsers for listener settings: addresses, the security protocol map, connection limits by address. All raise
`InvalidConfig`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.hosts import is_loopback
from millbeck.server.config.sections.listeners import PROTOCOLS

PORT_MAX = 65535
WILDCARD_HOSTS = ("", "0.0.0.0", "::")
"""Hosts that mean every interface; clients cannot connect to these."""
_PORT_DIGITS_MAX = 5


def parse_address(text: str, protocol_map: Mapping[str, str], setting: str = "listeners") -> ListenerAddress:
    """Parse ``NAME://host:port``; an IPv6 host may be in brackets."""
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
    """Parse ``NAME:PROTOCOL,...`` into security protocols by listener name."""
    pairs: dict[str, str] = {}
    for entry in _entries(text):
        name, colon, protocol = (part.strip().upper() for part in entry.partition(":"))
        if not colon or not name or protocol not in PROTOCOLS:
            raise InvalidConfig(
                f"listener.security.protocol.map: {entry!r} is not NAME:PROTOCOL with one of {', '.join(PROTOCOLS)}"
            )
        pairs[name] = protocol
    return pairs


def parse_ip_overrides(text: str) -> dict[str, int]:
    """Parse ``address:count,...`` into connection limits by address."""
    overrides: dict[str, int] = {}
    for entry in _entries(text):
        host, colon, count = entry.rpartition(":")
        if not colon or not host or not (count.isascii() and count.isdigit()):
            raise InvalidConfig(f"max.connections.per.ip.overrides: {entry!r} is not address:count")
        overrides[host] = int(count)
    return overrides


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerAddress:
    """One entry of ``listeners``: ``name://host:port`` and the security protocol its name maps to."""

    name: str
    host: str
    port: int
    protocol: str

    @property
    def is_encrypted(self) -> bool:
        return self.protocol in ("SSL", "SASL_SSL")

    @property
    def has_sasl(self) -> bool:
        return self.protocol in ("SASL_PLAINTEXT", "SASL_SSL")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"
