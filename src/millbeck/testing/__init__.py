"""A broker or a cluster for tests: ``with millbeck.testing.broker() as b:``, ``with millbeck.testing.cluster() as c:``,
the pytest plugin and the simulator.

Needs no pytest; what is imported from here is loaded when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millbeck.testing.broker_process import Broker, BrokerFailed, broker
    from millbeck.testing.cluster_processes import Cluster, cluster

__all__ = ["Broker", "BrokerFailed", "Cluster", "broker", "cluster"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("Cluster", "cluster"):
        from millbeck.testing import cluster_processes

        return getattr(cluster_processes, name)
    from millbeck.testing import broker_process

    return getattr(broker_process, name)
