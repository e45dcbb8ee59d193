"""Generate orders with skew and late arrivals, and the customers; the same seed gives the same orders. Pure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ORDERS: Final = "orders"
CUSTOMERS: Final = "customers"
REVENUE: Final = "revenue-by-region"
TOPICS: Final = {ORDERS: 3, CUSTOMERS: 3, REVENUE: 3}
"""The topics and their partition counts."""

REGIONS: Final = ("north", "south", "east", "west")
UNKNOWN: Final = "unknown"
"""The region of orders whose customer is not known."""
CUSTOMER_COUNT: Final = 200
SPEED: Final = 60
"""Seconds of event time per second of the clock."""
LATE_SECONDS_MAX: Final = 25
"""The maximum lateness of events, less than the grace period of the windows: no event is dropped as late."""
LATE_SHARE: Final = 0.2
UNKNOWN_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True)
class Event:
    topic: str
    key: bytes
    value: bytes
    timestamp_ms: int


def customers(begin_ms: int) -> list[Event]:
    """One event per customer with its region, at the start of the stream."""
    return [
        Event(
            CUSTOMERS,
            b"c%d" % number,
            json.dumps({"region": REGIONS[number % len(REGIONS)]}).encode(),
            begin_ms,
        )
        for number in range(CUSTOMER_COUNT)
    ]


def orders(seed: int, begin_ms: int, *, per_second: int) -> Iterator[list[Event]]:
    """Yield the orders of each second of the clock, endlessly. A few customers place most orders, and some orders have
    an unknown customer."""
    chance = random.Random(seed)
    number = 0
    second = 0
    while True:
        made = []
        for _ in range(per_second):
            now_ms = begin_ms + round((second + chance.random()) * SPEED * 1000)
            late_ms = chance.randint(0, LATE_SECONDS_MAX * 1000) if chance.random() < LATE_SHARE else 0
            customer = min(int(chance.paretovariate(1.1)), CUSTOMER_COUNT) - 1
            name = f"x{number}" if chance.random() < UNKNOWN_SHARE else f"c{customer}"
            cents = chance.randint(100, 20_000)
            value = json.dumps({"customer": name, "cents": cents}).encode()
            made.append(Event(ORDERS, b"o%d" % number, value, max(begin_ms, now_ms - late_ms)))
            number += 1
        yield made
        second += 1


def closing(end_ms: int, partitions: int) -> list[Event]:
    """Events without a customer, far in the future of event time: they make the last windows close."""
    value = json.dumps({"customer": "nobody", "cents": 0}).encode()
    return [Event(ORDERS, b"closing-%d" % number, value, end_ms) for number in range(partitions)]
