"""Built-in settings of nodes started by ``millbeck up`` and the test fixtures, single or in a small cluster."""

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
"""Overrides of Kafka's defaults for a single node."""


def embedded_settings(
    directory: str, *, host: str, port: int, metrics_port: int, protocol: str = "PLAINTEXT"
) -> dict[str, str]:
    """The complete settings of a single node: one listener, one log directory."""
    return {
        **EMBEDDED,
        "log.dirs": directory,
        "listeners": f"{protocol}://{f'[{host}]' if ':' in host else host}:{port}",
        "metrics.http.port": str(metrics_port),
    }


FAST_FAILOVER: Final = {
    "broker.heartbeat.interval.ms": "300",
    "broker.session.timeout.ms": "1500",
    "controller.quorum.election.backoff.max.ms": "200",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
}
"""Timeouts for a reliable network: the fast profile of docs/cluster.md. Kafka's defaults suit any network."""
REPLICAS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlacement:
    """The log directory and ports of one node of a local cluster."""

    node_id: int
    directory: str
    port: int
    controller_port: int
    metrics_port: int
    controller_host: str = ""
    """The host of its controller listener; empty means the node's host."""
    voters_in_log: bool = True
    """Whether voters are in the metadata log, rather than static voters in the settings (`server.local.cluster`)."""


def cluster_settings(
    place: NodePlacement, places: Sequence[NodePlacement], *, host: str, protocol: str = "PLAINTEXT"
) -> dict[str, str]:
    """The complete settings of one node of a local cluster, each with both roles; replication factor up to three."""
    shown = f"[{host}]" if ":" in host else host
    replicas = min(len(places), REPLICAS_MAX)
    # Tolerate one missing replica if at least two remain.
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
        "listeners": f"{protocol}://{shown}:{place.port},CONTROLLER://{controllers[place.node_id]}",
        "inter.broker.listener.name": protocol,
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


def _controller_address(place: NodePlacement, host: str) -> str:
    shown = place.controller_host or host
    return f"{f'[{shown}]' if ':' in shown else shown}:{place.controller_port}"
