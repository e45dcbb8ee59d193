from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.controller.placement import check_assignment, new_partition, place
from millbeck.controller.result import finished
from millbeck.kernel.errors import InvalidReplicaAssignment, InvalidReplicationFactor
from millbeck.metadata.image import BrokerRegistration, ClusterImage, Endpoint, MetadataImage
from millbeck.metadata.image.directories import MIGRATING_DIRECTORY


class First:
    """Randomness that always says the same."""

    def __init__(self, number: int = 0) -> None:
        self._number = number

    def below(self, bound: int) -> int:
        return self._number % bound

    def uuid(self) -> bytes:
        return bytes(16)


def _cluster(
    racks: Mapping[int, str | None], fenced: tuple[int, ...] = (), hosts: Mapping[int, str] | None = None
) -> ClusterImage:
    return ClusterImage(
        brokers={
            broker_id: BrokerRegistration(
                broker_id=broker_id,
                epoch=1,
                incarnation_id=bytes(16),
                rack=rack,
                is_fenced=broker_id in fenced,
                endpoints=() if hosts is None else (Endpoint(listener="A", host=hosts[broker_id], port=1),),
            )
            for broker_id, rack in racks.items()
        }
    )


def test_with_one_broker_everything_is_on_it(one_broker: MetadataImage) -> None:
    placed = finished(place(one_broker.cluster, partition_count=4, replication_factor=1, randomness=First()))
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
            finished(place(cluster, partition_count=count, replication_factor=factor, randomness=First(seed)))
        return
    placed = finished(place(cluster, partition_count=count, replication_factor=factor, randomness=First(seed)))
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
        for assignment in finished(place(cluster, partition_count=12, replication_factor=3, randomness=First(seed))):
            assert {cluster.brokers[replica].rack for replica in assignment.replicas} == {"a", "b", "c"}


def test_inside_a_rack_brokers_on_one_host_count_as_one() -> None:
    hosts = {1: "x", 2: "x", 3: "y", 4: "y", 5: "z", 6: "z"}
    for seed in range(6):
        cluster = _cluster(dict.fromkeys(hosts), hosts=hosts)
        for factor in (2, 3):
            for assignment in finished(
                place(cluster, partition_count=12, replication_factor=factor, randomness=First(seed))
            ):
                assert len({hosts[replica] for replica in assignment.replicas}) == factor
        # A rack counts for more than a host; with two racks of three brokers each, the third replica shares a rack, but
        # not a host.
        racks = {1: "a", 2: "a", 3: "a", 4: "b", 5: "b", 6: "b"}
        cluster = _cluster(racks, hosts={1: "x", 2: "x", 3: "y", 4: "z", 5: "z", 6: "w"})
        for assignment in finished(place(cluster, partition_count=12, replication_factor=3, randomness=First(seed))):
            assert {racks[replica] for replica in assignment.replicas} == {"a", "b"}
            assert len({cluster.brokers[replica].endpoints[0].host for replica in assignment.replicas}) == 3


@pytest.mark.parametrize(("count", "factor"), [(3, 2), (3, 3), (4, 2), (4, 3), (6, 2), (6, 3)])
def test_what_one_broker_leads_is_shared_out_when_it_fails(count: int, factor: int) -> None:
    cluster = _cluster(dict.fromkeys(range(count)))
    placed = finished(
        place(cluster, partition_count=2 * count * (count - 1), replication_factor=factor, randomness=First())
    )
    replicas = Counter(replica for assignment in placed for replica in assignment.replicas)
    assert set(replicas.values()) == {2 * (count - 1) * factor}
    successors = Counter(assignment.replicas[:2] for assignment in placed)
    assert len(successors) >= count * (count - 1) * 0.9
    assert max(successors.values()) <= 4


def test_who_is_leaving_or_full_takes_nothing_new() -> None:
    cluster = _cluster(dict.fromkeys((1, 2, 3)))
    records_for_controlled_shutdown = replace(cluster.brokers[2], in_controlled_shutdown=True)
    closed = replace(cluster.brokers[3], directories=(b"d" * 16,), cordoned_directories=(b"d" * 16,))
    cluster = ClusterImage(brokers={**cluster.brokers, 2: records_for_controlled_shutdown, 3: closed})
    placed = finished(place(cluster, partition_count=4, replication_factor=1, randomness=First()))
    assert {assignment.replicas for assignment in placed} == {(1,)}
    with pytest.raises(InvalidReplicationFactor, match=r"only 1 broker\(s\) are registered"):
        finished(place(cluster, partition_count=1, replication_factor=2, randomness=First()))


def test_thousands_are_placed_as_evenly_as_few() -> None:
    placed = finished(
        place(_cluster(dict.fromkeys(range(40))), partition_count=10_000, replication_factor=3, randomness=First())
    )
    leaders = Counter(assignment.replicas[0] for assignment in placed)
    assert (len(placed), max(leaders.values())) == (10_000, 250)


def test_fenced_brokers_take_replicas_only_when_they_must() -> None:
    cluster = _cluster({1: None, 2: None, 3: None}, fenced=(3,))
    for assignment in finished(place(cluster, partition_count=6, replication_factor=2, randomness=First())):
        assert 3 not in assignment.replicas
    for assignment in finished(place(cluster, partition_count=6, replication_factor=3, randomness=First())):
        assert assignment.replicas[-1] == 3


def test_without_active_brokers_there_is_no_place() -> None:
    with pytest.raises(InvalidReplicationFactor, match="fenced"):
        finished(place(_cluster({1: None}, fenced=(1,)), partition_count=1, replication_factor=1, randomness=First()))


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
