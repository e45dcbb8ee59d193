"""Selection of the replica that a consumer should read from (KIP-392).

``replica.selector.class`` names a selector by Kafka's class name. Only the leader selects, and only among in-sync
replicas that have the requested offset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from millbeck.kernel.errors import InvalidConfig

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class ReplicaView(NamedTuple):
    """A replica that a consumer could read from."""

    broker_id: int
    rack: str | None
    end_offset: int
    lag_ms: int
    """Time since it was last caught up; 0 for the leader."""
    is_leader: bool


class ReplicaSelector(Protocol):
    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        """The preferred replica for a consumer in ``rack``; None means the leader."""


class RackAwareSelector:
    """Prefers the leader if it is in the consumer's rack, else the replica there with the highest end, then least
    lag.
    """

    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        near = [replica for replica in replicas if rack and replica.rack == rack]
        if not near:
            return None
        return max(near, key=lambda replica: (replica.is_leader, replica.end_offset, -replica.lag_ms))


def make_replica_selector(name: str | None) -> ReplicaSelector | None:
    """The selector, or None where consumers read from the leader. Raises `InvalidConfig` for an unknown selector."""
    if not name or name == LEADER_SELECTOR:
        return None
    if name == RACK_AWARE_SELECTOR:
        return RackAwareSelector()
    raise InvalidConfig(
        f"replica.selector.class: {name} is not supported; use {LEADER_SELECTOR} or {RACK_AWARE_SELECTOR}"
    )
