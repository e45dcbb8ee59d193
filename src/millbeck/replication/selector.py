"""Which replica a consumer is told to read from (KIP-392).

``replica.selector.class`` names a selector, by the names of Kafka's own. Only the leader selects, and only among
replicas that are in sync and have what is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from millbeck.kernel.errors import InvalidConfig

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ReplicaView(NamedTuple):
    """A replica a consumer could read from."""

    broker_id: int
    rack: str | None
    end_offset: int
    lag_ms: int
    """Since it was caught up last; 0 for the leader."""
    is_leader: bool


class ReplicaSelector(Protocol):
    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        """The replica for a consumer in ``rack``; None leaves it with the leader."""


class RackAwareSelector:
    """The leader if it is near; else the near replica that has most, and of those the one that lagged least."""

    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        near = [replica for replica in replicas if rack and replica.rack == rack]
        if not near:
            return None
        return max(near, key=lambda replica: (replica.is_leader, replica.end_offset, -replica.lag_ms))


def selector_named(name: str | None) -> ReplicaSelector | None:
    """None where consumers read from the leader. Raises `InvalidConfig` for a selector nobody knows."""
    if not name or name == LEADER_SELECTOR:
        return None
    if name == RACK_AWARE_SELECTOR:
        return RackAwareSelector()
    raise InvalidConfig(f"replica.selector.class: {name} is not known; there is {RACK_AWARE_SELECTOR}")
