"""Invariants of the metadata quorum, checked over all of its members: R1-R5 and R7-R9.

R1: at most one process leads an epoch, ever. R2: one vote per replica and epoch. R3: the same offset and epoch mean the
same bytes after the same prefix. R4: a leader has everything committed. R5: a leader never truncates its log. R7:
epochs and high watermarks do not decrease. R8: committed records are on the disks of a majority of the voters, and the
last one is of the leader's own epoch. R9: the part before the start of a log is in a snapshot.
"""

from __future__ import annotations

from typing import Final

from millbeck.raft.effects import SendRequest
from millbeck.raft.machine import QuorumMachine
from millbeck.raft.messages import Request, Response, VoteRequest, VoteResponse
from millbeck.raft.voters import ReplicaKey
from millbeck.server.metadata.quorum_driver import QuorumDriver
from millbeck.simulation.environment.disk import SimDisk
from millbeck.simulation.observer.findings import Violations
from millbeck.simulation.observer.lineage import BatchTree, ReplicaBatch
from millbeck.simulation.observer.shadow_log import ShadowLog

SNAPSHOT_SUFFIX: Final = ".checkpoint"
QUORUM: Final = "__cluster_metadata-0"


class QuorumFacts:
    """The facts about the quorum as a whole, over all processes of its members."""

    def __init__(self, findings: Violations) -> None:
        self.findings = findings
        self.lineage = BatchTree(QUORUM)
        self.leaders: dict[int, str] = {}
        """The process that leads, by epoch."""
        self.votes: dict[tuple[int, bytes, int], ReplicaKey] = {}
        self.shadows: dict[int, ShadowLog] = {}
        """The shadow logs of the members by node id."""

    @property
    def election_count(self) -> int:
        return len(self.leaders)


class QuorumMemberChecker:
    """Checks one process of a member; ``process_name`` is unique, ``reported_epoch`` is the highest epoch that its
    earlier processes announced.
    """

    def __init__(
        self,
        facts: QuorumFacts,
        node_id: int,
        process_name: str,
        disk: SimDisk,
        quorum: QuorumDriver,
        reported_epoch: int,
    ) -> None:
        self.reported_epoch = reported_epoch
        self._facts = facts
        self._node_id = node_id
        self._process_name = process_name
        self._quorum = quorum
        self._shadow = facts.shadows.get(node_id) or ShadowLog(disk, facts.lineage)
        facts.shadows[node_id] = self._shadow
        self._has_begun = False
        self._leader_epoch = -1
        self._high_watermark = -1
        self._verified_offset = 0
        self._log_start_offset = 0
        self._listen(quorum)

    def _listen(self, quorum: QuorumDriver) -> None:
        """Observe sent messages: a vote or an epoch is binding only once it is sent; before that it may be lost."""
        ask_before, send_before = quorum.ask, quorum._send

        async def asked(ask: Request) -> Response:
            reply = await ask_before(ask)
            self.reported_epoch = max(self.reported_epoch, reply.leader.epoch)
            if (
                isinstance(ask, VoteRequest)
                and isinstance(reply, VoteResponse)
                and reply.is_granted
                and not ask.is_pre_vote
            ):
                self._voted(ask.epoch, ask.candidate)
            return reply

        def sent(effect: SendRequest) -> None:
            self.reported_epoch = max(self.reported_epoch, getattr(effect.ask, "epoch", -1))
            if isinstance(effect.ask, VoteRequest) and not effect.ask.is_pre_vote:
                self._voted(effect.ask.epoch, effect.ask.candidate)
            send_before(effect)

        quorum.ask = asked  # type: ignore[method-assign]
        quorum._send = sent  # type: ignore[method-assign]

    def _voted(self, epoch: int, candidate: ReplicaKey) -> None:
        machine = self._quorum.machine
        assert machine is not None
        key = (self._node_id, machine.key.directory_id, epoch)
        known = self._facts.votes.setdefault(key, candidate)
        if known.node_id != candidate.node_id:
            self._broken("R2", -1, f"votes for {candidate.node_id} in epoch {epoch}, after {known.node_id}")

    def _broken(self, invariant: str, offset: int, detail: str) -> None:
        self._facts.findings.broken(invariant, self._process_name, QUORUM, offset, detail)

    # Every turn.

    def check(self) -> None:
        machine = self._quorum.machine
        if machine is None:
            return
        log = self._quorum.log
        shadow = self._shadow
        if not self._has_begun:
            self._begin(machine)
        if log.log_start_offset != self._log_start_offset:
            self._start_moved()
        if log.end_offset != shadow.end_offset:
            self._log_changed(machine)
        shadow.flushed_offset = log.flushed_offset
        if machine.is_leader and self._leader_epoch != machine.epoch:
            self._leads(machine)
        if machine.high_watermark != self._high_watermark:
            self._committed(machine)

    def _begin(self, machine: QuorumMachine) -> None:
        self._has_begun = True
        if machine.epoch < self.reported_epoch:
            self._broken("R7", -1, f"epoch {machine.epoch} after a restart, {self.reported_epoch} before")
        self._check_new(self._shadow.begin(self._quorum.log))

    def _log_changed(self, machine: QuorumMachine) -> None:
        log, shadow = self._quorum.log, self._shadow
        if log.end_offset < shadow.end_offset:
            if machine.is_leader and self._leader_epoch == machine.epoch:
                self._broken("R5", log.end_offset, f"truncates its log while it leads epoch {machine.epoch}")
            if log.end_offset < self._high_watermark:
                self._broken("R7", log.end_offset, f"truncates its log below its high watermark {self._high_watermark}")
            shadow.cut(log.end_offset)
            self._verified_offset = min(self._verified_offset, log.end_offset)
        else:
            self._check_new(shadow.grow(log))

    def _check_new(self, entries: list[ReplicaBatch]) -> None:
        for entry in entries:
            other = self._facts.lineage.contradiction(entry)
            if other is not None:
                self._broken("R3", entry.base_offset, f"has {entry}, another has {other}")

    def _start_moved(self) -> None:
        log = self._quorum.log
        self._log_start_offset = log.log_start_offset
        self._shadow.starts_at(log.log_start_offset)
        names = self._shadow.disk.find_directory(log.directory).entries
        ends = [int(name.split("-")[0]) for name in names if name.endswith(SNAPSHOT_SUFFIX)]
        if log.log_start_offset > max(ends, default=0):
            self._broken("R9", log.log_start_offset, f"the log begins here, the snapshots end at {ends}")

    def _leads(self, machine: QuorumMachine) -> None:
        facts, epoch = self._facts, machine.epoch
        self._leader_epoch = epoch
        known = facts.leaders.setdefault(epoch, self._process_name)
        if known != self._process_name:
            self._broken("R1", -1, f"leads epoch {epoch}, which {known} leads or led")
        lineage = facts.lineage
        if epoch < max(facts.leaders):
            # It counts its votes late, and need not have the records that a later leader has committed since.
            return
        if not self._shadow.has_committed(lineage.committed_end):
            self._broken(
                "R4", lineage.committed_end, f"leads epoch {epoch} with a log that ends at {self._shadow.end_offset}"
            )

    def _committed(self, machine: QuorumMachine) -> None:
        before, self._high_watermark = self._high_watermark, machine.high_watermark
        facts, shadow = self._facts, self._shadow
        if machine.high_watermark < before:
            self._broken("R7", machine.high_watermark, f"the high watermark was {before}")
        for entry in shadow.between(self._verified_offset, machine.high_watermark):
            other = facts.lineage.commit(entry)
            self._verified_offset = entry.next_offset
            if other is not None:
                self._broken("R4", entry.base_offset, f"commits {entry}, but another batch is committed there")
        if machine.is_leader and machine.high_watermark > max(before, 0):
            self._check_majority(machine)

    def _check_majority(self, machine: QuorumMachine) -> None:
        facts, end_offset = self._facts, machine.high_watermark
        last = self._shadow.upto(end_offset)
        if last is not None and last.epoch != machine.epoch:
            self._broken("R8", end_offset, f"commits by count: {last} is not of the leader's epoch {machine.epoch}")
        voters = machine.history.latest
        holders = [
            node_id
            for node_id, shadow in facts.shadows.items()
            if voters.get(node_id) is not None
            and shadow.flushed_offset >= end_offset
            and shadow.has_committed(end_offset)
        ]
        if len(holders) < voters.majority:
            self._broken("R8", end_offset, f"is committed in epoch {machine.epoch}; only {holders} have it on disk")
