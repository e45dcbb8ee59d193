"""A broker or a cluster for tests: ``with millbeck.testing.broker() as b:``, ``with millbeck.testing.cluster() as c:``,
a schema registry: ``with millbeck.testing.registry(b.bootstrap) as url:``, ``KafkaContainer`` in the place of
testcontainers', and the pytest plugin.

Does not need pytest; the names here are imported lazily.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millbeck.testing.broker_process import Broker, BrokerFailed, broker
    from millbeck.testing.cluster_processes import Cluster, cluster
    from millbeck.testing.container import KafkaContainer
    from millbeck.testing.registry_process import registry
    from millbeck.testing.secure_broker import SecureBroker

__all__ = ["Broker", "BrokerFailed", "Cluster", "KafkaContainer", "SecureBroker", "broker", "cluster", "registry"]

_MODULES = {
    "Cluster": "cluster_processes",
    "KafkaContainer": "container",
    "SecureBroker": "secure_broker",
    "cluster": "cluster_processes",
    "registry": "registry_process",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"millbeck.testing.{_MODULES.get(name, 'broker_process')}"), name)
