"""Settings of a node that runs alone with everything in it, as ``millbeck up`` and the test fixtures start it."""

from __future__ import annotations

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
