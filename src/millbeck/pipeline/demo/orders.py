"""Orders with skew and late arrivals, and the customers who place them; the same seed makes the same orders. Pure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

ORDERS: Final = "orders"
CUSTOMERS: Final = "customers"
REVENUE: Final = "revenue-by-region-5min"
TOPICS: Final = {ORDERS: 3, CUSTOMERS: 3, REVENUE: 3}
"""Names and how many partitions each has."""

REGIONS: Final = ("north", "south", "east", "west")
CUSTOMER_COUNT: Final = 200
SPEED: Final = 60
"""Seconds of event time in one second of the clock."""
LATE_SECONDS_MAX: Final = 25
"""Events come at most this late, below the grace of the windows: none is ever too late to count."""
LATE_SHARE: Final = 0.2
UNKNOWN_SHARE: Final = 0.02


@dataclass(frozen=True, slots=True)
class Event:
    topic: str
    key: bytes
    value: bytes
    timestamp_ms: int


def customers(begin_ms: int) -> list[Event]:
    """Everyone, with a region, from the beginning on."""
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
    """What is ordered in each second of the clock, for ever. A few customers place most orders, and a few of them are
    not known."""
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
    """Events of nobody, of a time far behind every window: with them the last of the windows close."""
    value = json.dumps({"customer": "nobody", "cents": 0}).encode()
    return [Event(ORDERS, b"closing-%d" % number, value, end_ms) for number in range(partitions)]
