"""The invariants of the quorum, checked by an observer of all members.

R1: one leader per epoch. R2: one vote per epoch and replica. R3: log matching. R4: a leader has all committed records.
R5: a leader never truncates its log. R7: epochs and high watermarks do not decrease. R8: committed records are flushed
on a majority of the voters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from millbeck.raft.voters import ReplicaKey, VoterSet
from millbeck.simulation.raft.memory_log import LogEntry, MemoryLog


class RaftViolation(AssertionError):
    """An invariant does not hold."""


class Checks:
    def __init__(self) -> None:
        self.leaders: dict[int, tuple[ReplicaKey, int]] = {}
        self.votes: dict[tuple[ReplicaKey, int], ReplicaKey] = {}
        self.matching: dict[tuple[int, int], tuple[int, int]] = {}
        self.committed: dict[int, LogEntry] = {}
        self.committed_end = 0

    def leads(self, key: ReplicaKey, incarnation: int, epoch: int, log: MemoryLog) -> None:
        """Check R1 and R4 when a member becomes leader."""
        known = self.leaders.setdefault(epoch, (key, incarnation))
        _expect(known == (key, incarnation), f"R1: epoch {epoch} is led by {known} and by {(key, incarnation)}")
        for offset in range(log.start_offset, self.committed_end):
            has_it = offset < log.end_offset and log.at(offset) == self.committed[offset]
            _expect(has_it, f"R4: {key} leads epoch {epoch} without the committed record at {offset}")
        _expect(log.end_offset >= self.committed_end, f"R4: the log of {key} ends before the last committed record")

    def votes_for(self, voter: ReplicaKey, epoch: int, candidate: ReplicaKey) -> None:
        """Check R2 when a vote is sent."""
        known = self.votes.setdefault((voter, epoch), candidate)
        _expect(known == candidate, f"R2: {voter} voted for {known} and for {candidate} in epoch {epoch}")

    def appended(self, key: ReplicaKey, log: MemoryLog, offset: int) -> None:
        """Check R3: the same offset and epoch mean the same record after the same predecessor."""
        entry = log.at(offset)
        own = (entry.payload, log.epoch_before(offset))
        known = self.matching.setdefault((offset, entry.epoch), own)
        _expect(known == own, f"R3: {key} has {own} at offset {offset} of epoch {entry.epoch}, another has {known}")

    def commits(self, key: ReplicaKey, log: MemoryLog, before: int, high_watermark: int) -> None:
        """Check R7, and that members agree on what is committed."""
        _expect(high_watermark >= before, f"R7: the high watermark of {key} goes from {before} to {high_watermark}")
        _expect(high_watermark <= log.end_offset, f"{key} has committed {high_watermark} and ends at {log.end_offset}")
        for offset in range(max(before, log.start_offset), high_watermark):
            entry = log.at(offset)
            known = self.committed.setdefault(offset, entry)
            _expect(known == entry, f"{key} commits {entry} at offset {offset}, where {known} is committed")
        self.committed_end = max(self.committed_end, high_watermark)

    def leader_commits(
        self, high_watermark: int, voters: VoterSet, logs: Iterable[tuple[ReplicaKey, MemoryLog]], epoch: int
    ) -> None:
        """Check R8: a majority has the committed records on disk, and the last one is of the leader's own epoch."""
        last = self.committed.get(high_watermark - 1)
        _expect(
            last is not None and last.epoch == epoch,
            f"R8: the leader of epoch {epoch} commits up to {high_watermark}, where the last record is {last}",
        )
        holders = [
            key
            for key, log in logs
            if voters.has(key) and _holds(log, self.committed, high_watermark, log.flushed_offset)
        ]
        _expect(
            len({key.node_id for key in holders}) >= voters.majority,
            f"R8: {high_watermark} is committed in epoch {epoch}, but only {holders} have it on disk",
        )

    def truncates(self, key: ReplicaKey, offset: int, high_watermark: int, *, is_leader: bool) -> None:
        _expect(not is_leader, f"R5: {key} truncates its log at {offset} while it leads")
        _expect(
            offset >= high_watermark, f"{key} truncates its log at {offset}, below its high watermark {high_watermark}"
        )

    def persists(self, key: ReplicaKey, before: int, epoch: int) -> None:
        _expect(epoch >= before, f"R7: the epoch of {key} goes from {before} to {epoch}")


def _holds(log: MemoryLog, committed: dict[int, LogEntry], high_watermark: int, flushed_offset: int) -> bool:
    if min(log.end_offset, flushed_offset) < high_watermark:
        return False
    last = high_watermark - 1
    return last < log.start_offset or log.at(last) == committed[last]


def _expect(holds: bool, message: str | Callable[[], str]) -> None:
    if not holds:
        raise RaftViolation(message if isinstance(message, str) else message())
