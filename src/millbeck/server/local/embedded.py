"""Settings of nodes with everything in them, alone or a few together: ``millbeck up`` and the fixtures start those."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

EMBEDDED: Final = {
    "default.replication.factor": "1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.replication.factor": "1",
}
"""What one node alone needs other than Kafka's defaults."""


def embedded_settings(directory: str, *, host: str, port: int, metrics_port: int) -> dict[str, str]:
    """A whole configuration: one plain listener, one log directory."""
    return {
        **EMBEDDED,
        "log.dirs": directory,
        "listeners": f"PLAINTEXT://{f'[{host}]' if ':' in host else host}:{port}",
        "metrics.http.port": str(metrics_port),
    }


REPLICAS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one node of several on this host keeps its logs and listens."""

    node_id: int
    directory: str
    port: int
    controller_port: int
    metrics_port: int
    controller_host: str = ""
    """Where its controller listens; empty is where the node does."""
    voters_in_log: bool = True
    """Whether the metadata log says who votes, or the settings do (`server.local_cluster`)."""


def cluster_settings(place: Place, places: Sequence[Place], *, host: str) -> dict[str, str]:
    """A whole configuration of one node among several, each with both roles; every record is on three of them."""
    shown = f"[{host}]" if ":" in host else host
    replicas = min(len(places), REPLICAS_MAX)
    # One of the replicas may be missing, if that leaves more than one.
    in_sync_min = max(1, replicas - 1)
    controllers = {each.node_id: _controller_address(each, host) for each in places}
    if place.voters_in_log:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(controllers.values())}
    else:
        voters = ",".join(f"{node_id}@{address}" for node_id, address in controllers.items())
        quorum = {"controller.quorum.voters": voters}
    return {
        "process.roles": "broker,controller",
        "node.id": str(place.node_id),
        **quorum,
        "controller.listener.names": "CONTROLLER",
        "listeners": f"PLAINTEXT://{shown}:{place.port},CONTROLLER://{controllers[place.node_id]}",
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": place.directory,
        "metrics.http.port": str(place.metrics_port),
        "default.replication.factor": str(replicas),
        "min.insync.replicas": str(in_sync_min),
        "group.initial.rebalance.delay.ms": "0",
        "offsets.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.replication.factor": str(replicas),
        "share.coordinator.state.topic.min.isr": str(in_sync_min),
        "transaction.state.log.replication.factor": str(replicas),
        "transaction.state.log.min.isr": str(in_sync_min),
    }


def _controller_address(place: Place, host: str) -> str:
    shown = place.controller_host or host
    return f"{f'[{shown}]' if ':' in shown else shown}:{place.controller_port}"
