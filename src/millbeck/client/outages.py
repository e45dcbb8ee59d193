"""Unreachable brokers: since when, why, and when to retry. Pure: the cluster passes the time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from millbeck.client.addresses import Address

RECENT_SECONDS: Final = 5.0


@dataclass(slots=True, kw_only=True)
class Outage:
    """An address that has been unreachable since ``since_s`` (loop time)."""

    address: Address
    since_s: float
    reason: str
    failures: int = 0
    """The number of consecutive failed attempts."""
    tried_s: float = 0.0
    retry_at_s: float = 0.0


class Outages:
    def __init__(self) -> None:
        self._by_address: dict[Address, Outage] = {}
        self._reached: set[Address] = set()

    def trying(self, address: Address, now_s: float) -> Outage:
        """Record the start of an attempt; returns the state of earlier ones."""
        outage = self._by_address.get(address)
        if outage is None:
            outage = self._by_address[address] = Outage(address=address, since_s=now_s, reason="no answer yet")
        outage.tried_s = now_s
        return outage

    def failed(self, address: Address, now_s: float, reason: str, *, delay_s: float) -> None:
        outage = self.trying(address, now_s)
        outage.failures += 1
        outage.reason = reason
        outage.retry_at_s = now_s + delay_s

    def reached(self, address: Address, known: Collection[Address]) -> None:
        """Record a success; ``known`` are the addresses of the cluster now, others are forgotten."""
        self._by_address.pop(address, None)
        self._reached.intersection_update(known)
        self._reached.add(address)

    def was_reached(self, address: Address) -> bool:
        """Whether a connection to the address has succeeded."""
        return address in self._reached

    def reason(self, address: Address) -> str | None:
        """The reason why the address cannot be reached; None if it can, or if no attempt has failed."""
        outage = self._by_address.get(address)
        return outage.reason if outage is not None and outage.failures else None

    def reasons(self) -> list[str]:
        """Why the addresses that are unreachable now are not reached."""
        return [
            outage.reason if outage.failures else f"no answer from {outage.address} yet"
            for outage in self._by_address.values()
        ]

    def longest(self, now_s: float, being_tried: frozenset[Address]) -> Outage | None:
        """The longest outage still being waited for: its address is being tried, or failed repeatedly."""
        wanted = [
            each
            for each in self._by_address.values()
            if each.address in being_tried or (each.failures > 1 and now_s - each.tried_s < RECENT_SECONDS)
        ]
        return min(wanted, key=lambda each: each.since_s, default=None)
