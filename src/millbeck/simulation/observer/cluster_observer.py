"""The observer of a `SimCluster`: it is called after every iteration of the event loop and checks the nodes that ran in
it.

This costs a few comparisons when nothing has changed; new data is read and checked once. Nothing here changes
the run: no randomness, no virtual time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from millbeck.metadata.image import MetadataImage
from millbeck.replication.partition import Partition
from millbeck.server.node import Node
from millbeck.simulation.cluster import SimCluster, SimNode
from millbeck.simulation.environment.process import Process
from millbeck.simulation.observer.findings import InvariantBroken, Violations
from millbeck.simulation.observer.image_watch import MetadataFacts
from millbeck.simulation.observer.partition_watch import ReplicaChecker, ReplicationFacts
from millbeck.simulation.observer.quorum_watch import QuorumFacts, QuorumMemberChecker

UNEXPECTED: Final = "unexpected error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of what happened in a run, to detect runs that prove nothing."""

    quorum_elections: int = 0
    partition_elections: int = 0
    isr_changes: int = 0
    truncations: int = 0
    acknowledged: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            quorum_elections=self.quorum_elections + other.quorum_elections,
            partition_elections=self.partition_elections + other.partition_elections,
            isr_changes=self.isr_changes + other.isr_changes,
            truncations=self.truncations + other.truncations,
            acknowledged=self.acknowledged + other.acknowledged,
        )


class ClusterObserver:
    """Checks the invariants of a cluster during a run.

    What it has observed so far is in ``data`` (partitions), ``metadata`` (images) and ``quorum`` (the metadata quorum).
    """

    def __init__(
        self,
        cluster: SimCluster,
        *,
        min_insync_replicas: int,
        omitted: frozenset[str] = frozenset(),
        keeps_sessions: bool = False,
    ) -> None:
        """``keeps_sessions`` says that no fault separates a running broker from the active controller."""
        self.findings = Violations(cluster.world.loop.time, omitted)
        self.quorum = QuorumFacts(self.findings)
        self.data = ReplicationFacts(self.findings, min_insync_replicas)
        self.metadata = MetadataFacts(self.findings, self.data)
        if keeps_sessions:
            self.metadata.must_be_unfenced = self._runs_with_epoch
        self.excused: dict[str, None] = {}
        self._cluster = cluster
        self._lives: dict[Process, _Life] = {}
        self._reported_epochs: dict[int, int] = {}
        self._members: dict[str, SimNode] = {member.name: member for member in cluster.members}
        cluster.world.loop.on_turn = self._turn_ended

    def counts(self, acknowledged: int) -> Counts:
        return Counts(
            quorum_elections=self.quorum.election_count,
            partition_elections=self.data.election_count,
            isr_changes=self.metadata.isr_change_count,
            truncations=self.data.truncation_count,
            acknowledged=acknowledged,
        )

    def _turn_ended(self, active: dict[Process, None]) -> None:
        if self.findings.first is not None:
            # The violation was raised in the middle of the node's code, which handled it as one of its own errors.
            raise InvariantBroken(self.findings.first)
        for process in active:
            if process.is_harness or not process.is_alive:
                continue
            life = self._lives.get(process)
            if life is None:
                life = self._begin(process)
            if life is not None:
                life.check()

    def _begin(self, process: Process) -> _Life | None:
        member = self._members.get(process.machine_name)
        node = None if member is None else self._cluster.nodes.get(member.name)
        if member is None or node is None or not hasattr(node.broker, "quorum"):
            return None
        run = self._cluster.machine(member).run
        if run is None or run.process is not process or node.environment is not run.environment:
            return None
        for old in [old for old, life in self._lives.items() if life.member is member]:
            self._reported_epochs[member.number] = self._lives.pop(old).quorum.reported_epoch
        life = _Life(self, member, process.name, node, self._reported_epochs.get(member.number, -1))
        self._lives[process] = life
        return life

    def is_registered(self, node_id: int) -> bool:
        """Whether the broker is running, in the same process that the controller has registered."""
        image = self.metadata.newest
        broker = None if image is None else image.cluster.brokers.get(node_id)
        return broker is not None and self._runs_with_epoch(node_id, broker.epoch)

    def _runs_with_epoch(self, node_id: int, epoch: int) -> bool:
        member = self._cluster.member(node_id)
        node = self._cluster.nodes.get(member.name)
        return self._cluster.machine(member).is_running and node is not None and node.broker_epoch == epoch

    # Called by the harness.

    def ended_unclean(self, member: SimNode) -> None:
        """Record that the node's process was killed: its next registration must not rely on its previous state."""
        image, node = self.metadata.newest, self._cluster.nodes.get(member.name)
        broker = None if image is None else image.cluster.brokers.get(member.number)
        if broker is not None and node is not None and node.broker_epoch == broker.epoch:
            self.metadata.unclean[member.number] = broker.epoch

    def excuse(self, member: SimNode) -> None:
        """Record that the node's disk fails or is full, so that disk errors are expected."""
        self.excused[member.name] = None

    def lost_data(self, member: SimNode) -> None:
        self.data.mark_data_lost(member.number)

    def disk_replaced(self, member: SimNode) -> None:
        self.data.mark_data_lost(member.number)
        self._reported_epochs.pop(member.number, None)
        for process in [process for process, life in self._lives.items() if life.member is member]:
            del self._lives[process]


class _Life:
    """One process of one node."""

    def __init__(
        self, observer: ClusterObserver, member: SimNode, process_name: str, node: Node, reported_epoch: int
    ) -> None:
        self.member = member
        self._observer = observer
        self._name = process_name
        self._node = node
        self._disk = observer._cluster.machine(member).disk
        self._image: MetadataImage | None = None
        self._was_active = False
        self._partitions: dict[Partition, ReplicaChecker] = {}
        self.quorum = QuorumMemberChecker(
            observer.quorum, member.number, process_name, self._disk, node.broker.quorum, reported_epoch
        )

    def check(self) -> None:
        observer, broker = self._observer, self._node.broker
        if broker.unexpected_errors or broker.quorum.failure is not None:
            self._look_for_surprises()
        self.quorum.check()
        image = broker.quorum.image
        if image is not self._image and image.offset >= 0:
            before, self._image = self._image, image
            observer.metadata.published(self._name, before, image)
        is_active = broker.quorum.is_active
        if is_active != self._was_active:
            self._was_active = is_active
            if is_active:
                observer.metadata.check_controller(self._name, image)
        if self.member.is_broker:
            has_joined = 0 <= self._node.broker_epoch <= broker.image.offset
            for topic in broker.topics.by_name.values():
                for partition in topic.partitions.values():
                    watch = self._partitions.get(partition)
                    if watch is None:
                        watch = self._watch(topic.name, partition)
                    watch.check(has_joined=has_joined)

    def _look_for_surprises(self) -> None:
        """A node may stop because of its disk, never because of an internal contradiction."""
        if self.member.name in self._observer.excused:
            return
        broker = self._node.broker
        failure = broker.quorum.failure
        cause = None if failure is None else failure.__cause__
        if broker.unexpected_errors or isinstance(cause, AssertionError | LookupError | TypeError | AttributeError):
            detail = f"{broker.unexpected_errors} unexpected errors, {failure!r} because of {cause!r}"
            self._observer.findings.broken(UNEXPECTED, self._name, "", -1, detail)

    def _watch(self, topic: str, partition: Partition) -> ReplicaChecker:
        data = self._observer.data
        facts = data.of(topic, partition.name.partition)
        watch = ReplicaChecker(
            data, facts, self.member.number, self._name, self._disk, partition, lambda leader: facts.shadows.get(leader)
        )
        self._partitions[partition] = watch
        return watch
