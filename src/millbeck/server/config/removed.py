"""Settings of former Kafka releases that Kafka 4 no longer has, and what to write instead.

Kafka 4 itself passes over them in silence; a node that was meant to find a ZooKeeper, or to write an older format,
should not start as if it had understood.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.kernel.errors import InvalidConfig

_QUORUM: Final = (
    "there is no ZooKeeper, the node keeps the metadata itself: use process.roles=broker,controller, and "
    "controller.quorum.voters or controller.quorum.bootstrap.servers where others keep it"
)
_FORMAT: Final = "formats follow the feature level metadata.version: set it with `millbeck storage format`"
_LISTENERS: Final = "use listeners"
_ADVERTISED: Final = "use advertised.listeners"
_ENCODER: Final = "dynamic settings are kept in the metadata log and are not encoded: leave it out"

REMOVED: Final = {
    "broker.id.generation.enable": "ids are not generated: set node.id",
    "reserved.broker.max.id": "ids are not generated: set node.id",
    "inter.broker.protocol.version": _FORMAT,
    "log.message.format.version": _FORMAT,
    "log.message.downconversion.enable": "old message formats are not served: leave it out",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "control.plane.listener.name": "use controller.listener.names",
    "controlled.shutdown.max.retries": "a shutdown is asked for once: controlled.shutdown.enable is what is left of it",
    "controlled.shutdown.retry.backoff.ms": (
        "a shutdown is asked for once: controlled.shutdown.enable is what is left of it"
    ),
    "leader.imbalance.per.broker.percentage": "use auto.leader.rebalance.enable and "
    "leader.imbalance.check.interval.seconds",
    "offsets.commit.required.acks": "commits always wait for all in-sync replicas: leave it out",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "group.coordinator.new.enable": "there is one group coordinator: leave it out",
    "host.name": _LISTENERS,
    "port": _LISTENERS,
    "advertised.host.name": _ADVERTISED,
    "advertised.port": _ADVERTISED,
    "quota.producer.default": "set it as a quota on the default client, with kafka-configs",
    "quota.consumer.default": "set it as a quota on the default client, with kafka-configs",
}
"""Exact names. `_PREFIXES` holds whole families."""

_PREFIXES: Final = {
    "zookeeper.": _QUORUM,
    "password.encoder.": _ENCODER,
}


def replacement_of(name: str) -> str | None:
    """What to do about a setting that is no longer there; None for every other name."""
    found = REMOVED.get(name)
    if found is not None:
        return found
    return next((advice for prefix, advice in _PREFIXES.items() if name.startswith(prefix)), None)


def check_not_removed(texts: Mapping[str, str]) -> None:
    """Raise `InvalidConfig` that names every such setting and its replacement."""
    problems = [f"{name} is gone: {advice}" for name in texts if (advice := replacement_of(name)) is not None]
    if problems:
        raise InvalidConfig("; ".join(problems))
