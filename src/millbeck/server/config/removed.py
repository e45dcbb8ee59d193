"""Settings that Kafka 4 has removed, and their replacements.

Kafka 4 itself ignores them silently; a node configured for ZooKeeper or an old message format should not start as if it
supported that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from millbeck.kernel.errors import InvalidConfig

_QUORUM: Final = (
    "ZooKeeper is not supported, metadata is kept by KRaft controllers: use process.roles=broker,controller, or with "
    "separate controllers controller.quorum.voters or controller.quorum.bootstrap.servers"
)
_FORMAT: Final = "formats are determined by the feature metadata.version: set it with `millbeck storage format`"
_LISTENERS: Final = "use listeners"
_ADVERTISED: Final = "use advertised.listeners"
_ENCODER: Final = "dynamic configs are stored unencrypted in the metadata log: remove it"

REMOVED: Final = {
    "broker.id.generation.enable": "broker ids are not generated: set node.id",
    "reserved.broker.max.id": "broker ids are not generated: set node.id",
    "inter.broker.protocol.version": _FORMAT,
    "log.message.format.version": _FORMAT,
    "log.message.downconversion.enable": "old message formats are not supported: remove it",
    "log.message.timestamp.difference.max.ms": (
        "use log.message.timestamp.before.max.ms and log.message.timestamp.after.max.ms"
    ),
    "control.plane.listener.name": "use controller.listener.names",
    "controlled.shutdown.max.retries": "a controlled shutdown is not retried: use controlled.shutdown.enable only",
    "controlled.shutdown.retry.backoff.ms": (
        "a controlled shutdown is not retried: use controlled.shutdown.enable only"
    ),
    "leader.imbalance.per.broker.percentage": "use auto.leader.rebalance.enable and "
    "leader.imbalance.check.interval.seconds",
    "offsets.commit.required.acks": "offset commits always use acks=all: remove it",
    "delegation.token.master.key": "use delegation.token.secret.key",
    "group.coordinator.new.enable": "there is only one group coordinator implementation: remove it",
    "host.name": _LISTENERS,
    "port": _LISTENERS,
    "advertised.host.name": _ADVERTISED,
    "advertised.port": _ADVERTISED,
    "quota.producer.default": "set a default client quota with kafka-configs",
    "quota.consumer.default": "set a default client quota with kafka-configs",
}
"""Removed settings by their exact names; `_PREFIXES` has prefixes."""

_PREFIXES: Final = {
    "zookeeper.": _QUORUM,
    "password.encoder.": _ENCODER,
}


def replacement_of(name: str) -> str | None:
    """The replacement of a removed setting; None for every other name."""
    found = REMOVED.get(name)
    if found is not None:
        return found
    return next((advice for prefix, advice in _PREFIXES.items() if name.startswith(prefix)), None)


def check_not_removed(texts: Mapping[str, str]) -> None:
    """Raise `InvalidConfig` that names every removed setting with its replacement."""
    problems = [f"{name} has been removed: {advice}" for name in texts if (advice := replacement_of(name)) is not None]
    if problems:
        raise InvalidConfig("; ".join(problems))
