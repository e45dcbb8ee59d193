"""The rules of replicas, told to the facts of one partition."""

from __future__ import annotations

import random

import pytest

from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.observer.findings import InvariantBroken, Violations
from millbeck.simulation.observer.lineage import ROOT, ReplicaBatch
from millbeck.simulation.observer.partition_watch import PartitionFacts, ReplicationFacts
from millbeck.simulation.observer.shadow_log import ShadowLog


def data() -> ReplicationFacts:
    return ReplicationFacts(Violations(lambda: 1.0), 2)


def replica(facts: PartitionFacts, node_id: int, checksums: list[int]) -> ShadowLog:
    """A log of batches of one record each."""
    shadow = facts.shadows[node_id] = ShadowLog(SimDisk(random.Random(1)), facts.lineage)
    place = ROOT
    for offset, checksum in enumerate(checksums):
        place = facts.lineage.place(place, offset, offset + 1, 0, checksum)
        shadow.entries.append(ReplicaBatch(offset, offset + 1, 0, checksum, place))
        shadow._bases.append(offset)
        shadow.end_offset = offset + 1
    return shadow


def test_what_is_acknowledged_or_read_is_committed() -> None:
    known = data()
    for entry in replica(known.of("t", 0), 1, [11, 12]).entries:
        known.of("t", 0).lineage.commit(entry)
    known.acknowledged("t", 0, 1)
    known.consumed("t", 0, 1)
    with pytest.raises(InvariantBroken, match="D2 on a producer, t-0 at offset 2"):
        known.acknowledged("t", 0, 2)
    with pytest.raises(InvariantBroken, match="D4 on a consumer, t-0 at offset 2"):
        known.consumed("t", 0, 2)


def test_members_have_everything_committed_unless_they_lost_it() -> None:
    known = data()
    facts = known.of("t", 0)
    for entry in replica(facts, 1, [11, 12]).entries:
        facts.lineage.commit(entry)
    replica(facts, 2, [11, 12, 13])
    replica(facts, 3, [11, 99])
    known.check_members(facts, (1, 2), "D7", "in sync")
    with pytest.raises(InvariantBroken, match="D7 on node 3"):
        known.check_members(facts, (1, 2, 3), "D7", "in sync")
    with pytest.raises(InvariantBroken, match="node 4"):
        known.check_members(facts, (4,), "D7", "in sync")
    facts.wounded[3] = None
    known.check_members(facts, (3,), "D7", "in sync")


def test_a_loss_is_remembered_for_every_partition() -> None:
    known = data()
    known.of("t", 0)
    known.mark_data_lost(5)
    known.damage(6)
    assert 5 in known.of("t", 0).lossy
    assert 5 not in known.of("t", 0).wounded
    assert 6 in known.of("t", 0).damaged


def test_what_a_stale_leader_commits_is_with_the_newer_leader_unless_its_disk_lost_it() -> None:
    known = data()
    facts = known.of("t", 0)
    known.check_newer_leader(facts, "b1/1", 0)
    for entry in replica(facts, 1, [11, 12]).entries:
        facts.lineage.commit(entry)
    replica(facts, 2, [11])
    facts.newest_leader = (1, 2)
    with pytest.raises(InvariantBroken, match="D3 on b1/1, t-0 at offset 2"):
        known.check_newer_leader(facts, "b1/1", 0)
    known.check_newer_leader(facts, "b2/1", 1)
    facts.damaged[2] = None
    known.check_newer_leader(facts, "b1/1", 0)
    del facts.damaged[2]
    facts.wounded[2] = None
    known.check_newer_leader(facts, "b1/1", 0)
