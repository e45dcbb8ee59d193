"""Selection of the replica that a consumer should read from (KIP-392).

``replica.selector.class`` names a selector by Kafka's class name, short or in full, or a plugin. Only the leader
selects, and only among in-sync replicas that have the requested offset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

LEADER_SELECTOR: Final = "org.apache.kafka.common.replica.LeaderSelector"
RACK_AWARE_SELECTOR: Final = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_PACKAGE: Final = "org.apache.kafka.common.replica."


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
    """Prefers the leader if it is in the consumer's rack, otherwise the replica in the rack with the highest end
    offset, then the least lag."""

    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        near = [replica for replica in replicas if rack and replica.rack == rack]
        if not near:
            return None
        return max(near, key=lambda replica: (replica.is_leader, replica.end_offset, -replica.lag_ms))


class GuardedSelector:
    """Guards a plugin's selector: if it fails, or chooses a replica that was not offered, consumers read from the
    leader."""

    def __init__(self, selector: ReplicaSelector, on_failure: Callable[[Exception], None]) -> None:
        self._selector = selector
        self._on_failure = on_failure

    def select(self, rack: str, replicas: Sequence[ReplicaView]) -> ReplicaView | None:
        try:
            chosen = self._selector.select(rack, replicas)
            if chosen is not None and chosen not in replicas:
                raise ValueError("it chose a replica that was not offered")
        except Exception as error:
            self._on_failure(error)
            return None
        return chosen


def make_replica_selector(
    name: str | None, load: Callable[[str], ReplicaSelector], on_failure: Callable[[Exception], None]
) -> ReplicaSelector | None:
    """The selector; None if consumers always read from the leader. ``load`` loads a plugin and raises `InvalidConfig`;
    ``on_failure`` gets the plugin's exceptions."""
    if not name or name in (LEADER_SELECTOR, LEADER_SELECTOR.removeprefix(_PACKAGE)):
        return None
    if name in (RACK_AWARE_SELECTOR, RACK_AWARE_SELECTOR.removeprefix(_PACKAGE)):
        return RackAwareSelector()
    return GuardedSelector(load(name), on_failure)
