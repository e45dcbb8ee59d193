from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.controller.placement import check_assignment, new_partition, place
from millbeck.kernel.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from millbeck.metadata.image import BrokerRegistration, ClusterImage, MetadataImage
from millbeck.metadata.image.directories import MIGRATING_DIRECTORY


class First:
    """Randomness that always says the same."""

    def __init__(self, number: int = 0) -> None:
        self._number = number

    def below(self, bound: int) -> int:
        return self._number % bound

    def uuid(self) -> bytes:
        return bytes(16)


def _cluster(racks: dict[int, str | None], fenced: tuple[int, ...] = ()) -> ClusterImage:
    return ClusterImage(
        brokers={
            broker_id: BrokerRegistration(
                broker_id=broker_id, epoch=1, incarnation_id=bytes(16), rack=rack, is_fenced=broker_id in fenced
            )
            for broker_id, rack in racks.items()
        }
    )


def test_with_one_broker_everything_is_on_it(one_broker: MetadataImage) -> None:
    placed = place(one_broker.cluster, partition_count=4, replication_factor=1, randomness=First())
    assert [assignment.replicas for assignment in placed] == [(1,)] * 4


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(st.integers(0, 20), st.sampled_from((None, "a", "b", "c")), min_size=1, max_size=7),
    st.integers(1, 30),
    st.integers(1, 7),
    st.integers(0, 100),
    st.integers(0, 3),
)
def test_placements_are_sound_and_even(
    racks: dict[int, str | None], count: int, factor: int, seed: int, fenced_count: int
) -> None:
    fenced = tuple(sorted(racks))[: min(fenced_count, len(racks) - 1)]
    cluster = _cluster(racks, fenced)
    if factor > len(racks):
        with pytest.raises(InvalidReplicationFactor):
            place(cluster, partition_count=count, replication_factor=factor, randomness=First(seed))
        return
    placed = place(cluster, partition_count=count, replication_factor=factor, randomness=First(seed))
    assert len(placed) == count
    active = [broker_id for broker_id in racks if broker_id not in fenced]
    leaders = Counter(dict.fromkeys(active, 0))
    for assignment in placed:
        assert len(set(assignment.replicas)) == len(assignment.replicas) == factor
        assert assignment.replicas[0] in active
        leaders[assignment.replicas[0]] += 1
        assert new_partition(cluster, assignment.replicas) is not None
    assert max(leaders.values()) - min(leaders.values()) <= 1


def test_replicas_are_in_as_many_racks_as_can_be() -> None:
    cluster = _cluster({1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"})
    for seed in range(6):
        for assignment in place(cluster, partition_count=12, replication_factor=3, randomness=First(seed)):
            assert {cluster.brokers[replica].rack for replica in assignment.replicas} == {"a", "b", "c"}


def test_fenced_brokers_take_replicas_only_when_they_must() -> None:
    cluster = _cluster({1: None, 2: None, 3: None}, fenced=(3,))
    for assignment in place(cluster, partition_count=6, replication_factor=2, randomness=First()):
        assert 3 not in assignment.replicas
    for assignment in place(cluster, partition_count=6, replication_factor=3, randomness=First()):
        assert assignment.replicas[-1] == 3


def test_without_active_brokers_there_is_no_place() -> None:
    with pytest.raises(InvalidReplicationFactor, match="fenced"):
        place(_cluster({1: None}, fenced=(1,)), partition_count=1, replication_factor=1, randomness=First())


def test_a_partition_begins_with_its_active_replicas(cluster_of: Callable[..., MetadataImage]) -> None:
    cluster = cluster_of(1, 2).cluster
    partition = new_partition(cluster, (2, 1))
    assert partition is not None
    assert (partition.isr, partition.leader) == ((2, 1), 2)
    assert partition.directories == (bytes([102]) * 16, bytes([101]) * 16)
    fenced = _cluster({1: None, 2: None}, fenced=(1,))
    partly = new_partition(fenced, (1, 2))
    assert partly is not None
    assert (partly.isr, partly.leader, partly.directories) == ((2,), 2, (MIGRATING_DIRECTORY,) * 2)
    assert new_partition(fenced, (1,)) is None


def test_assignments_by_hand_are_checked() -> None:
    cluster = _cluster({1: None, 2: None})
    check_assignment(cluster, [1, 2], 2)
    for replicas, expected in (([], None), ([3], None), ([1, 1], None), ([1], 2)):
        with pytest.raises(InvalidReplicaAssignment):
            check_assignment(cluster, replicas, expected)
