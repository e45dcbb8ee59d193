"""A Kafka client on asyncio, small and for any broker: Apache Kafka's as well as millbeck's.

    from millbeck.client import Admin, Consumer, Producer

Each client takes an `Environment`, which is its network, clock and randomness (``millbeck.host.real_environment()``, or
the simulator's), and settings under Kafka's names. What a program does not use is not loaded: the names here are looked
up when they are first asked for.

`protocol` and `connection` speak with one broker, `cluster` knows which one to speak with, and `producer`, `consumer`
and `admin` are what programs see.
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
