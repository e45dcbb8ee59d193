"""Invariants of data replicas, checked over all nodes: D1-D8.

D1: committed prefixes agree. D2: acknowledged records are committed, and every later leader has them. D3: one process
leads a partition in an epoch, epochs increase, and records that an older leader still commits are on the newer leader.
D4: the high watermark does not decrease, waits for enough replicas and for all in-sync ones, and consumers read nothing
beyond it. D5: offset and epoch identify bytes. D6: epochs begin in order, and a log is truncated where it diverges, not
earlier. D7: in-sync and eligible replicas have everything committed. D8: log start, high watermark and log end are in
order.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from millbeck.metadata.image import MetadataImage
from millbeck.replication.partition import Partition
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.observer.findings import Violations
from millbeck.simulation.observer.lineage import BatchTree, ReplicaBatch
from millbeck.simulation.observer.shadow_log import ShadowLog


class PartitionFacts:
    """The facts about one partition, over all its replicas and their processes."""

    def __init__(self, name: str, topic: str, index: int) -> None:
        self.name = name
        self.topic = topic
        self.index = index
        self.lineage = BatchTree(name)
        self.leaders: dict[int, str] = {}
        self.newest_leader: tuple[int, int] | None = None
        """The highest epoch in which a node was seen to lead, and that node."""
        self.shadows: dict[int, ShadowLog] = {}
        self.wounded: dict[int, None] = {}
        """Nodes that have lost data of which the controller may not know yet."""
        self.lossy: dict[int, None] = {}
        """Nodes that have lost data and have not been in sync since."""
        self.damaged: dict[int, None] = {}
        """Nodes with corrupted disks, whose truncations do not follow from epochs."""


class ReplicationFacts:
    """All partitions, and the newest published image."""

    def __init__(self, findings: Violations, min_insync_replicas: int) -> None:
        self.findings = findings
        self.min_insync_replicas = min_insync_replicas
        self.partitions: dict[tuple[str, int], PartitionFacts] = {}
        self.newest_image: Callable[[], MetadataImage | None] = lambda: None
        self.truncation_count = 0

    def of(self, topic: str, index: int) -> PartitionFacts:
        facts = self.partitions.get((topic, index))
        if facts is None:
            facts = self.partitions[topic, index] = PartitionFacts(f"{topic}-{index}", topic, index)
        return facts

    @property
    def election_count(self) -> int:
        return sum(len(facts.leaders) for facts in self.partitions.values())

    def mark_data_lost(self, node_id: int) -> None:
        """Record that the node's disk lost unsynced data, or all data."""
        image = self.newest_image()
        for facts in self.partitions.values():
            facts.lossy[node_id] = None
            found = None if image is None else image.topics.partition(facts.topic, facts.index)
            if found is not None and node_id in (*found.isr, *found.eligible_leader_replicas):
                facts.wounded[node_id] = None

    def damage(self, node_id: int) -> None:
        """Record that data on the node's disk was corrupted."""
        for facts in self.partitions.values():
            facts.damaged[node_id] = facts.lossy[node_id] = None

    def acknowledged(self, topic: str, index: int, last_offset: int) -> None:
        """Check D2 when a producer receives an acknowledgement."""
        facts = self.of(topic, index)
        if last_offset >= facts.lineage.committed_end:
            detail = f"is acknowledged, {facts.lineage.committed_end} is the end of what is committed"
            self.findings.broken("D2", "a producer", facts.name, last_offset, detail)

    def consumed(self, topic: str, index: int, last_offset: int) -> None:
        """Check D4 when a consumer has read a record."""
        facts = self.of(topic, index)
        if last_offset >= facts.lineage.committed_end:
            detail = f"is read, {facts.lineage.committed_end} is the end of what is committed"
            self.findings.broken("D4", "a consumer", facts.name, last_offset, detail)

    def check_members(self, facts: PartitionFacts, members: tuple[int, ...], invariant: str, why: str) -> None:
        """Check that all in-sync and eligible replicas have what is committed, apart from known disk losses."""
        end_offset = facts.lineage.committed_end
        for node_id in members:
            shadow = facts.shadows.get(node_id)
            if node_id in facts.wounded or node_id in facts.damaged:
                continue
            if (shadow is None and end_offset > 0) or (shadow is not None and not shadow.has_committed(end_offset)):
                ends = "there is none" if shadow is None else f"ends at {shadow.end_offset}"
                self.findings.broken(invariant, f"node {node_id}", facts.name, end_offset, f"{why}; its log: {ends}")

    def check_newer_leader(self, facts: PartitionFacts, process_name: str, epoch: int) -> None:
        """Check that the leader of a newer epoch has what the leader of ``epoch`` has just committed.

        It had the records when it was elected. If its disk has lost data since, the fault budget ensures that others
        have them, and the next leader is checked when it begins to lead.
        """
        if facts.newest_leader is None:
            return
        newest_epoch, leader_id = facts.newest_leader
        if newest_epoch <= epoch or leader_id in facts.wounded or leader_id in facts.damaged:
            return
        end_offset = facts.lineage.committed_end
        if not facts.shadows[leader_id].has_committed(end_offset):
            detail = f"is committed in epoch {epoch}, the leader of epoch {newest_epoch} does not have it"
            self.findings.broken("D3", process_name, facts.name, end_offset, detail)


class ReplicaChecker:
    """One replica during one process of its node."""

    def __init__(
        self,
        data: ReplicationFacts,
        facts: PartitionFacts,
        node_id: int,
        process_name: str,
        disk: SimDisk,
        partition: Partition,
        shadow_of: Callable[[int], ShadowLog | None],
    ) -> None:
        self.partition = partition
        self.facts = facts
        self._data = data
        self._node_id = node_id
        self._process_name = process_name
        self._shadow_of = shadow_of
        self._shadow = facts.shadows.get(node_id) or ShadowLog(disk, facts.lineage)
        facts.shadows[node_id] = self._shadow
        self._led_epoch = -1
        self._leader_epoch = -1
        self._high_watermark = -1
        self._verified_offset = 0
        self._epochs_version = -1
        self._log_start_offset = 0

    def _broken(self, invariant: str, offset: int, detail: str) -> None:
        self._data.findings.broken(invariant, self._process_name, self.facts.name, offset, detail)

    def check(self, *, has_joined: bool) -> None:
        """Check the replica. A node that has not registered with this process serves no clients yet."""
        partition, shadow = self.partition, self._shadow
        log = partition.log
        if not shadow.is_of(log):
            self._check_new(shadow.begin(log))
        elif log.end_offset != shadow.end_offset:
            self._log_changed(partition)
        if partition.leader_epoch != self._leader_epoch:
            if partition.leader_epoch < self._leader_epoch:
                self._broken("D3", -1, f"leader epoch {partition.leader_epoch} after {self._leader_epoch}")
            self._leader_epoch = partition.leader_epoch
        if has_joined and partition.is_leader and partition.leader_epoch != self._led_epoch:
            self._leads(partition)
        if partition.high_watermark != self._high_watermark:
            self._committed(partition)
        if log.epochs.version != self._epochs_version:
            self._check_epochs(partition)

    def _log_changed(self, partition: Partition) -> None:
        log, shadow = partition.log, self._shadow
        if log.end_offset > shadow.end_offset:
            self._check_new(shadow.grow(log))
            return
        before = shadow.end_offset
        gone = shadow.cut(log.end_offset)
        self._verified_offset = min(self._verified_offset, log.end_offset)
        self._data.truncation_count += 1
        if partition.is_leader and self._led_epoch == partition.leader_epoch:
            self._broken("D6", log.end_offset, f"truncates its log, which ended at {before}, while it leads")
        leader = self._shadow_of(partition.leader_id) if partition.leader_id != self._node_id else None
        if leader is not None and self._node_id not in self.facts.damaged and leader.disk is not shadow.disk:
            common = shadow.common_end(leader, gone)
            if common > log.end_offset:
                detail = f"truncates its log, which ended at {before} and equals its leader's up to {common}"
                self._broken("D6", log.end_offset, detail)

    def _check_new(self, entries: list[ReplicaBatch]) -> None:
        for entry in entries:
            other = self.facts.lineage.contradiction(entry)
            if other is not None and self._node_id not in self.facts.damaged:
                self._broken("D5", entry.base_offset, f"has {entry}, another has {other}")

    def _leads(self, partition: Partition) -> None:
        facts, epoch = self.facts, partition.leader_epoch
        self._led_epoch = epoch
        known = facts.leaders.setdefault(epoch, self._process_name)
        if known != self._process_name:
            self._broken("D3", -1, f"leads epoch {epoch}, which {known} leads or led")
        if facts.newest_leader is not None and epoch < facts.newest_leader[0]:
            # It learns of its election late, and need not have the records that others have committed since.
            return
        facts.newest_leader = (epoch, self._node_id)
        if not self._shadow.has_committed(facts.lineage.committed_end):
            detail = f"leads epoch {epoch} with a log that ends at {self._shadow.end_offset}"
            self._broken("D2", facts.lineage.committed_end, detail)

    def _committed(self, partition: Partition) -> None:
        before, self._high_watermark = self._high_watermark, partition.high_watermark
        log, facts, shadow = partition.log, self.facts, self._shadow
        if not log.log_start_offset <= partition.high_watermark <= log.end_offset:
            detail = f"the log goes from {log.log_start_offset} to {log.end_offset}"
            self._broken("D8", partition.high_watermark, f"is the high watermark; {detail}")
        if partition.high_watermark < before and self._node_id not in facts.damaged:
            self._broken("D4", partition.high_watermark, f"is the high watermark, which was {before}")
        known_end = facts.lineage.committed_end
        for entry in shadow.between(self._verified_offset, partition.high_watermark):
            other = facts.lineage.commit(entry)
            self._verified_offset = entry.next_offset
            if other is not None:
                self._broken("D1", entry.base_offset, f"commits {entry}, but another batch is committed there")
        if partition.is_leader and facts.lineage.committed_end > known_end:
            self._check_enough(partition)

    def _check_enough(self, partition: Partition) -> None:
        """Check that enough replicas have what a leader has just committed."""
        data, facts = self._data, self.facts
        end_offset = facts.lineage.committed_end
        replicas = partition.replicas
        if replicas is not None and len(replicas.isr) < min(data.min_insync_replicas, len(replicas.replicas)):
            self._broken("D4", end_offset, f"is committed by {replicas.isr} alone")
        data.check_newer_leader(facts, self._process_name, partition.leader_epoch)
        image = data.newest_image()
        found = None if image is None else image.topics.partition(facts.topic, facts.index)
        if found is not None:
            why = f"is committed in epoch {partition.leader_epoch}"
            data.check_members(facts, found.isr, "D4", f"{why} while the node is in sync")
            data.check_members(facts, found.eligible_leader_replicas, "D7", f"{why} while the node is eligible")

    def _check_epochs(self, partition: Partition) -> None:
        epochs = partition.log.epochs
        self._epochs_version = epochs.version
        entries = epochs.entries()
        if any(one[0] >= two[0] or one[1] > two[1] for one, two in itertools.pairwise(entries)):
            self._broken("D6", -1, f"epochs begin at {entries}")
        log = partition.log
        if log.log_start_offset < self._log_start_offset and self._node_id not in self.facts.damaged:
            self._broken("D8", log.log_start_offset, f"is the log start, which was {self._log_start_offset}")
        self._log_start_offset = log.log_start_offset
