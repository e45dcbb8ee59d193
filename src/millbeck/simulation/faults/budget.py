"""The fault budget: which data may be destroyed without exceeding what replication guarantees.

The guarantee: a record acknowledged with acks=all survives if at most ``min.insync.replicas - 1`` replicas lose data at
a time. The budget is computed per partition from what the disks really hold. A disk may lose data if, for every
partition, all other replicas that the controller might elect have everything committed and undamaged. A process that is
killed loses no data, but the controller cannot know that and no longer counts on its replicas; so while lost data is
not recovered yet, no other replica may be killed.
"""

from __future__ import annotations

from collections.abc import Sequence

from millbeck.simulation.observer.cluster_observer import ClusterObserver
from millbeck.simulation.observer.partition_watch import PartitionFacts


class FaultBudget:
    def __init__(self, observer: ClusterObserver) -> None:
        self._observer = observer
        self.refused_count = 0

    def may_lose(self, node_id: int) -> bool:
        """Whether this node's disk may lose unsynced data, be corrupted, or be replaced."""
        allowed = all(self._survives(facts, node_id) for facts in self._observer.data.partitions.values())
        self.refused_count += not allowed
        return allowed

    def may_end(self, node_ids: Sequence[int]) -> bool:
        """Whether the processes of these nodes may be killed."""
        allowed = all(
            node_id in facts.lossy or node_id not in facts.shadows
            for facts in self._observer.data.partitions.values()
            if facts.lossy
            for node_id in node_ids
        )
        self.refused_count += not allowed
        return allowed

    def _survives(self, facts: PartitionFacts, node_id: int) -> bool:
        """Whether all other in-sync and eligible replicas have everything, and at least one remains."""
        if node_id not in facts.shadows:
            return True
        image = self._observer.metadata.newest
        found = None if image is None else image.topics.partition(facts.topic, facts.index)
        if found is None:
            return True
        others = [each for each in (*found.isr, *found.eligible_leader_replicas) if each != node_id]
        return bool(others) and all(self._is_whole(facts, other) for other in others)

    def _is_whole(self, facts: PartitionFacts, node_id: int) -> bool:
        shadow = facts.shadows.get(node_id)
        if shadow is None or node_id in facts.lossy or not self._observer.is_registered(node_id):
            # When its next process is registered, the controller may no longer count on it.
            return False
        end_offset = facts.lineage.committed_end
        if not shadow.has_committed(end_offset):
            return False
        return node_id not in facts.damaged or shadow.is_whole(end_offset)
