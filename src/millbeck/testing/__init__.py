"""A broker for tests: ``with millbeck.testing.broker() as b:``, the pytest plugin and the simulator.

Needs no pytest; what is imported from here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millbeck.testing.broker_process import Broker, BrokerFailed, broker

__all__ = ["Broker", "BrokerFailed", "broker"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from millbeck.testing import broker_process

    return getattr(broker_process, name)
