"""An asyncio Kafka client that works with any broker, Apache Kafka's as well as millbeck's.

    from millbeck.client import Admin, Consumer, Producer

Each client takes an `Environment`, which is its network, clock and randomness (``millbeck.host.real_environment()``, or
the simulator's), and settings under Kafka's names. The names here are imported lazily, on first access, so that a
program loads only what it uses.

`protocol` and `connection` talk to one broker, `cluster` finds the broker to talk to, and `producer`, `consumer` and
`admin` are the public API.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.client.consumer import Consumer
    from millbeck.client.producer import Producer

_HOMES = {
    "Admin": "millbeck.client.admin",
    "Consumer": "millbeck.client.consumer",
    "Producer": "millbeck.client.producer",
}

__all__ = ["Admin", "Consumer", "Producer"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    return getattr(import_module(home), name)
