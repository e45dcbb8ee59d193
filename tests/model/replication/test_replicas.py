"""Three replicas of a partition under everything that happens to them.

Goal: what was acknowledged with acks=all is in the log of every later leader, at its offset; logs agree byte for byte
below their high watermarks; a leader's high watermark never goes back; an idempotent producer's batches are there once.
Method: a stateful property over `replicas.Cluster`, where appends, fetches, the controller's answers, the arrival of
metadata, elections, kills and power losses come in any order. The controller does what the real one promises: it names
only in-sync replicas, and one that comes back after a power loss without flushing is not in sync.

The mutants at the end break one rule each. Each comes with the schedule that shows why the rule is there: it ends well
with the rule and badly without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from millbeck import compiled
from millbeck.kernel.errors import ApiError, NotEnoughReplicas
from millbeck.replication import log_read
from millbeck.replication.isr import Follower, IsrState
from millbeck.replication.partition import NO_LEADER, Partition
from millbeck.storage import rebuild
from tests.log_steps import truncate_to
from tests.unit.replication.replicas import Append, Cluster, Replica

NODES = st.sampled_from([1, 2, 3])
PRODUCERS = st.sampled_from([7, 8])


class Producer:
    """Idempotent, one batch in flight; what has failed or is unknown is sent again, unchanged."""

    def __init__(self, producer_id: int) -> None:
        self.producer_id = producer_id
        self.sequence = 0
        self.unsettled: Append | None = None

    @property
    def label(self) -> str:
        return f"{self.producer_id}/{self.sequence}"

    def fields(self) -> dict[str, Any]:
        return {"producer_id": self.producer_id, "producer_epoch": 0, "base_sequence": self.sequence}


class ReplicasMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.acknowledged: dict[int, str] = {}
        self.watermarks: dict[tuple[int, int], int] = {}
        self.producers = {producer_id: Producer(producer_id) for producer_id in (7, 8)}

    @initialize(flushes=st.booleans())
    def begin(self, flushes: bool) -> None:
        self.flushes = flushes
        self.cluster = Cluster(flush_messages="1") if flushes else Cluster()
        self.cluster.fetch_bytes = 100
        self.cluster.elect(1)

    # clients

    @rule(producer_id=PRODUCERS)
    def produce(self, producer_id: int) -> None:
        """To whoever takes itself for the leader and is heard; the last such one is the newest."""
        leaders = [each for each in self.up() if each.partition.is_leader]
        if leaders:
            newest = max(leaders, key=lambda each: each.partition.leader_epoch)
            self.send(producer_id, newest.node_id)

    @rule(producer_id=PRODUCERS, node_id=NODES)
    def produce_to_anybody(self, producer_id: int, node_id: int) -> None:
        if self.cluster[node_id].is_up:
            self.send(producer_id, node_id)

    def send(self, producer_id: int, node_id: int) -> None:
        producer = self.producers[producer_id]
        self.look_at(producer)
        producer.unsettled = None
        try:
            producer.unsettled = self.cluster.produce(producer.label, node_id=node_id, **producer.fields())
        except ApiError:
            return
        self.look_at(producer)

    def look_at(self, producer: Producer) -> None:
        append = producer.unsettled
        if append is not None and append.outcome == "ok":
            self.acknowledged[append.first_offset] = append.label
            producer.sequence += 1
            producer.unsettled = None

    # replicas

    def up(self) -> list[Replica]:
        return [each for each in self.cluster.replicas.values() if each.is_up]

    @rule(node_id=NODES)
    def fetch(self, node_id: int) -> None:
        replica = self.cluster[node_id]
        if not replica.is_up or replica.fetcher is None:
            return
        leader = self.cluster.replicas.get(replica.fetcher.leader_id)
        if leader is not None and leader.is_up:
            self.cluster.now_ms += 2000
            self.cluster.fetch(node_id)

    @rule(rounds=st.integers(1, 3))
    def everybody_fetches(self, rounds: int) -> None:
        for _ in range(rounds):
            for node_id in (1, 2, 3):
                self.fetch(node_id)

    @rule(node_id=NODES)
    def flush(self, node_id: int) -> None:
        if self.cluster[node_id].is_up:
            self.cluster[node_id].flush()

    @rule(seconds=st.sampled_from([1, 20, 40]))
    def time_passes(self, seconds: int) -> None:
        self.cluster.now_ms += seconds * 1000

    @rule(node_id=NODES)
    def look_for_laggards(self, node_id: int) -> None:
        if self.cluster[node_id].is_up:
            self.cluster[node_id].partition.maybe_shrink_isr()

    @rule(node_id=NODES)
    def checkpoint(self, node_id: int) -> None:
        replica = self.cluster[node_id]
        if replica.is_up:
            replica.checkpoint = replica.partition.high_watermark

    # the controller

    @rule()
    def decide(self) -> None:
        self.cluster.decide()

    @rule(node_id=NODES, mark_without_data=st.booleans())
    def elect(self, node_id: int, mark_without_data: bool) -> None:
        """A clean election; when quiet, the others hear of it later, the old leader too."""
        cluster = self.cluster
        if node_id not in cluster.isr or not cluster[node_id].is_up:
            return
        if mark_without_data:
            cluster.leader = node_id
            cluster.leader_epoch += 1
            cluster.partition_epoch += 1
            cluster.tell(node_id)
        else:
            cluster.elect(node_id)

    @rule(node_id=NODES)
    def metadata_arrives(self, node_id: int) -> None:
        self.cluster.tell(node_id)

    @rule(node_id=NODES, loses_power=st.booleans())
    def end(self, node_id: int, loses_power: bool) -> None:
        replica = self.cluster[node_id]
        if replica.is_up and len(self.up()) > 1:
            replica.crash(power_loss=loses_power)
            self.fence(node_id, keeps_data=self.flushes or not loses_power)

    def fence(self, node_id: int, *, keeps_data: bool) -> None:
        """As the controller does: who may have lost data may not lead, whoever else is in sync or eligible may."""
        cluster = self.cluster
        cluster.commit(tuple(member for member in cluster.isr if member != node_id), None if keeps_data else node_id)
        cluster.partition_epoch += 1
        if cluster.leader == node_id:
            self.find_leader()

    def find_leader(self) -> None:
        cluster = self.cluster
        alive = [member for member in cluster.isr or cluster.eligible if cluster[member].is_up]
        cluster.elect(alive[0] if alive else NO_LEADER, (alive[0],) if alive and not cluster.isr else None)

    @rule(node_id=NODES)
    def come_back(self, node_id: int) -> None:
        replica = self.cluster[node_id]
        if replica.is_up:
            return
        replica.start()
        if self.cluster.leader == NO_LEADER:
            self.find_leader()
        self.cluster.tell(node_id)

    # what must hold

    @invariant()
    def acknowledged_is_kept(self) -> None:
        cluster = getattr(self, "cluster", None)
        if cluster is None or cluster.leader == NO_LEADER:
            return
        for producer in self.producers.values():
            self.look_at(producer)
        leader = cluster[cluster.leader]
        if not leader.is_up or leader.partition.leader_epoch != cluster.leader_epoch:
            return
        values = leader.values()
        for offset, label in self.acknowledged.items():
            assert offset < len(values), f"{label} is lost: acknowledged at {offset}, the log ends at {len(values)}"
            assert values[offset] == label.encode(), f"{label} at {offset} became {values[offset]!r}"

    @invariant()
    def logs_agree_below_their_watermarks(self) -> None:
        if not hasattr(self, "cluster"):
            return
        up = self.up()
        for one in up:
            for other in up[one.node_id :]:
                upto = min(one.partition.high_watermark, other.partition.high_watermark)
                assert one.data(upto) == other.data(upto), f"{one.node_id} and {other.node_id} differ below {upto}"

    @invariant()
    def a_leaders_watermark_never_goes_back(self) -> None:
        for replica in self.up() if hasattr(self, "cluster") else []:
            mine = replica.partition
            assert mine.log.log_start_offset <= mine.high_watermark <= mine.log.end_offset
            if mine.is_leader:
                key = (replica.node_id, mine.leader_epoch)
                assert mine.high_watermark >= self.watermarks.get(key, 0)
                self.watermarks[key] = mine.high_watermark

    @invariant()
    def every_batch_is_there_once(self) -> None:
        for replica in self.up() if hasattr(self, "cluster") else []:
            values = replica.values()
            assert len(values) == len(set(values)), f"twice on {replica.node_id}: {values}"

    @precondition(lambda self: self.flushes)
    @rule()
    def all_lose_power(self) -> None:
        for node_id in (1, 2, 3):
            if self.cluster[node_id].is_up:
                self.cluster[node_id].crash(power_loss=True)
        cluster = self.cluster
        if cluster.leader != NO_LEADER:
            cluster.leader = NO_LEADER
            cluster.leader_epoch += 1
        cluster.partition_epoch += 1
        for node_id in (1, 2, 3):
            self.come_back(node_id)


def test_nothing_acknowledged_is_lost() -> None:
    run_state_machine_as_test(
        ReplicasMachine,
        settings=settings(
            max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


# Mutants.

Patch = Callable[[pytest.MonkeyPatch], None]
Schedule = Callable[[Cluster], None]


def check(cluster: Cluster, *appends: Append | None) -> None:
    """Whatever was acknowledged is where it was, and the logs agree."""
    leader = cluster[cluster.leader]
    values = leader.values()
    for append in appends:
        if append is not None and append.outcome == "ok":
            assert values[append.first_offset : append.first_offset + 1] == [append.label.encode()]
    for replica in cluster.replicas.values():
        upto = min(replica.partition.high_watermark, leader.partition.high_watermark)
        assert replica.data(upto) == leader.data(upto)
    assert len(values) == len(set(values))


def leader_acknowledges_alone(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IsrState, "watermark", lambda self, own_offset, end_offset: own_offset)


def nobody_has_fetched(cluster: Cluster) -> None:
    append = cluster.produce("a")
    cluster.elect(2)
    check(cluster, append)


def acknowledges_before_the_minimum_is_in_sync(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(IsrState, "is_under", lambda self, minimum: False)


def the_last_in_sync_replica_loses_its_disk(cluster: Cluster) -> None:
    cluster.change_isr((1,))
    cluster.now_ms += 60_000
    append = None
    try:
        append = cluster.produce("a")
    except NotEnoughReplicas:
        pass
    assert cluster.eligible == (2, 3)
    cluster.elect(2, (2,))
    check(cluster, append)


def truncation_to_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    original = Partition.follow

    def follow(self: Partition, leader_id: int, leader_epoch: int, partition_epoch: int) -> bool:
        is_new = original(self, leader_id, leader_epoch, partition_epoch)
        if is_new:
            truncate_to(self.log, self.high_watermark)
        return is_new

    patch.setattr(Partition, "follow", follow)


def followers_do_not_know_yet_what_is_committed(cluster: Cluster) -> None:
    append = cluster.produce("a")
    cluster.fetch_all(2)
    assert (append.outcome, cluster[2].partition.high_watermark) == ("ok", 0)
    cluster.elect(1)
    cluster.elect(2)
    check(cluster, append)


def a_member_that_is_behind_is_counted(patch: pytest.MonkeyPatch) -> None:
    def expansion(self: IsrState, follower: Follower, high_watermark: int, epoch_start_offset: int) -> Any:
        if self.pending is not None or follower.broker_id in self.isr:
            return None
        return (*self.isr, follower.broker_id)

    patch.setattr(IsrState, "expansion", expansion)


def one_comes_back_and_the_leader_goes(cluster: Cluster) -> None:
    cluster.fetch_bytes = 1
    cluster.change_isr((1, 2))
    cluster.now_ms += 60_000
    appends = [cluster.produce(label) for label in "abc"]
    for _ in range(5):
        cluster.fetch(2)
    assert appends[-1].outcome == "ok"
    cluster.fetch(3)
    cluster.decide()
    if 3 in cluster.isr:
        cluster.elect(3)
    check(cluster, *appends)
    for _ in range(5):
        cluster.fetch(3)
    assert cluster.decide() == [(1, 2, 3)]


def watermark_over_a_stale_set(patch: pytest.MonkeyPatch) -> None:
    """A proposal's new member does not count until the answer is here, though the controller may have taken it."""
    original = IsrState.propose

    def propose(self: IsrState, isr: tuple[int, ...], leader_epoch: int, partition_epoch: int) -> Any:
        proposal = original(self, isr, leader_epoch, partition_epoch)
        self.maximal = self.isr
        return proposal

    patch.setattr(IsrState, "propose", propose)
    patch.setattr(IsrState, "_may_join", lambda self, follower, end_offset: False)


def the_answer_is_on_its_way(cluster: Cluster) -> None:
    cluster.change_isr((1, 2))
    cluster.now_ms += 60_000
    cluster.fetch(3)
    ((_, proposal),) = cluster.proposals
    cluster.commit(proposal.isr)
    append = cluster.produce("a")
    for _ in range(3):
        cluster.fetch(2)
    cluster.elect(3)
    check(cluster, append)


def no_check_for_diverging_epochs(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(log_read, "divergence", lambda log, fetch_offset, last_fetched_epoch: None)


def a_deposed_leader_has_something_of_its_own(cluster: Cluster) -> None:
    cluster.produce("mine", acks_all=False)
    cluster.elect(2)
    append = cluster.produce("theirs")
    cluster.fetch_all()
    assert append.outcome == "ok"
    cluster.elect(1)
    check(cluster, append)


def producers_unknown_to_a_new_leader(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rebuild, "stage_replayed", lambda state, batch, header: None)


def a_retry_after_an_election(cluster: Cluster) -> None:
    fields: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    first = cluster.produce("a", **fields)
    cluster.fetch_all()
    cluster.elect(2)
    again = cluster.produce("a", **fields)
    cluster.fetch_all()
    assert (first.first_offset, again.first_offset) == (0, 0)
    check(cluster, first, again)


MUTANTS: list[tuple[Patch, Schedule]] = [
    (leader_acknowledges_alone, nobody_has_fetched),
    (acknowledges_before_the_minimum_is_in_sync, the_last_in_sync_replica_loses_its_disk),
    (truncation_to_the_high_watermark, followers_do_not_know_yet_what_is_committed),
    (a_member_that_is_behind_is_counted, one_comes_back_and_the_leader_goes),
    (watermark_over_a_stale_set, the_answer_is_on_its_way),
    (no_check_for_diverging_epochs, a_deposed_leader_has_something_of_its_own),
    (producers_unknown_to_a_new_leader, a_retry_after_an_election),
]


def started() -> Cluster:
    cluster = Cluster()
    cluster.elect(1)
    return cluster


@pytest.mark.parametrize(("mutant", "schedule"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_each_schedule_ends_well(mutant: Patch, schedule: Schedule) -> None:
    cluster = started()
    schedule(cluster)
    assert cluster.leader in cluster.isr


@pytest.mark.skipif(compiled.in_use(), reason="a compiled class keeps its methods")
@pytest.mark.parametrize(("mutant", "schedule"), MUTANTS, ids=[mutant.__name__ for mutant, _ in MUTANTS])
def test_each_broken_rule_is_noticed(mutant: Patch, schedule: Schedule, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises(AssertionError):
        schedule(started())
