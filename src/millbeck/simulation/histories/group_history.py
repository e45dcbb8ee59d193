"""The assignments, revocations and commits of group members, checked against G1 to G5.

Members report events in the order in which they happen in the simulated world. It is an anomaly if a member is assigned
a partition that another member still owns, unless the other one had been removed from the group by then. That is read
from ``__consumer_offsets``, because a partitioned member cannot know that it was removed. The log itself is checked
too: no partition has two owners, and no epoch decreases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from millbeck.coordinator.group.records import GroupRecord
from millbeck.simulation.histories.history import Anomaly

TWO_OWNERS: Final = "two owners"
STALE_COMMIT: Final = "stale commit"
LOST_COMMIT: Final = "lost commit"
EPOCH_WENT_BACK: Final = "epoch went back"
NEVER_STABLE: Final = "never stable"
NOT_COVERED: Final = "not covered"
VACUOUS: Final = "vacuous"

Place = tuple[bytes, int]
"""Topic id and partition."""


@dataclass(frozen=True, slots=True)
class DoubleOwnership:
    place: Place
    holder: str
    receiver: str


@dataclass(slots=True)
class LogFacts:
    """The contents of the group's partition of ``__consumer_offsets``."""

    removed_at: dict[str, list[int]] = field(default_factory=dict)
    """The offsets in the log at which each member was removed."""
    granted_at: dict[tuple[str, Place], list[int]] = field(default_factory=dict)
    anomalies: list[Anomaly] = field(default_factory=list)

    def check_epoch(self, name: str, before: int, now: int, offset: int) -> None:
        if now < before:
            self.anomalies.append(Anomaly(EPOCH_WENT_BACK, f"{name} was {before} and is {now} at {offset}"))


class GroupHistory:
    def __init__(self) -> None:
        self.anomalies: list[Anomaly] = []
        self.grant_count = 0
        self.commit_count = 0
        self.refusal_count = 0
        self.late_count = 0
        """The number of commits with an earlier member epoch, for partitions that the member owned at that epoch."""
        self._held: dict[str, dict[Place, None]] = {}
        self._overlaps: list[DoubleOwnership] = []
        self._acknowledged: dict[Place, int] = {}

    # Reports of members

    def granted(self, member_id: str, places: Iterable[Place]) -> None:
        """Record that a response has assigned these partitions to the member."""
        own = self._held.setdefault(member_id, {})
        for place in places:
            self.grant_count += 1
            self._overlaps += [
                DoubleOwnership(place, other, member_id)
                for other, held in self._held.items()
                if other != member_id and place in held
            ]
            own[place] = None

    def keeps(self, member_id: str, places: Iterable[Place]) -> None:
        """Record that the member is about to report exactly these partitions as owned."""
        self._held[member_id] = dict.fromkeys(places)

    def gone(self, member_id: str) -> None:
        """Record that the member owns no partitions: it left, died, or learned that it was fenced."""
        self._held.pop(member_id, None)

    def acknowledged(self, place: Place, offset: int) -> None:
        self.commit_count += 1
        self._acknowledged[place] = max(offset, self._acknowledged.get(place, -1))

    def last_acknowledged(self, place: Place) -> int:
        return self._acknowledged.get(place, -1)

    def fetched(self, place: Place, offset: int, *, at_least: int) -> None:
        """Record a fetched committed offset; ``at_least`` was acknowledged before the request was sent."""
        if offset < at_least:
            self.anomalies.append(Anomaly(LOST_COMMIT, f"{place} is at {offset}, {at_least} was acknowledged"))

    def stale_commit(self, member_id: str, *, is_accepted: bool) -> None:
        self.refusal_count += not is_accepted
        if is_accepted:
            self.anomalies.append(Anomaly(STALE_COMMIT, f"a commit of {member_id} with an old epoch was accepted"))

    # In the end

    def check(self, log: Sequence[tuple[int, GroupRecord]]) -> list[Anomaly]:
        """All violations, given the group's records with their offsets."""
        facts = self.read_log(log)
        found = self.anomalies + facts.anomalies
        for overlap in self._overlaps:
            removed = facts.removed_at.get(overlap.holder, [])
            grants = facts.granted_at.get((overlap.receiver, overlap.place), [])
            if not any(before < after for before in removed for after in grants):
                found.append(
                    Anomaly(TWO_OWNERS, f"{overlap.receiver} was assigned {overlap.place}, which {overlap.holder} owns")
                )
        if not self.grant_count or not self.commit_count:
            found.append(Anomaly(VACUOUS, f"{self.grant_count} grants, {self.commit_count} commits"))
        return found

    def read_log(self, log: Sequence[tuple[int, GroupRecord]]) -> LogFacts:
        """Read the facts from the group's own records."""
        return read_log(log)


def read_log(log: Sequence[tuple[int, GroupRecord]]) -> LogFacts:
    facts = LogFacts()
    assigned: dict[str, dict[Place, None]] = {}
    held: dict[Place, str] = {}
    epoch = target_epoch = 0
    for offset, record in log:
        key, value = record.key, record.value
        if isinstance(key, ConsumerGroupMetadataKey) and isinstance(value, ConsumerGroupMetadataValue):
            facts.check_epoch("the group's epoch", epoch, value.epoch, offset)
            epoch = value.epoch
        elif isinstance(key, ConsumerGroupTargetAssignmentMetadataKey):
            if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
                facts.check_epoch("the target's epoch", target_epoch, value.assignment_epoch, offset)
                target_epoch = value.assignment_epoch
        elif isinstance(key, ConsumerGroupMemberMetadataKey) and value is None:
            facts.removed_at.setdefault(key.member_id, []).append(offset)
        elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            for place in [place for place, holder in held.items() if holder == key.member_id]:
                del held[place]
            before = assigned.pop(key.member_id, {})
            if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
                assigned[key.member_id] = _take(facts, key.member_id, value, before, held, offset)
    return facts


def _take(
    facts: LogFacts,
    member_id: str,
    value: ConsumerGroupCurrentMemberAssignmentValue,
    before: dict[Place, None],
    held: dict[Place, str],
    offset: int,
) -> dict[Place, None]:
    now = dict.fromkeys(assignment.places_of(assignment.from_wire(value.assigned_partitions)))
    revoking = assignment.places_of(assignment.from_wire(value.partitions_pending_revocation))
    for place in [*now, *revoking]:
        other = held.get(place)
        if other is not None:
            facts.anomalies.append(
                Anomaly(TWO_OWNERS, f"{member_id} owns {place} at offset {offset} of the log, and so does {other}")
            )
        held[place] = member_id
    for place in now:
        if place not in before:
            facts.granted_at.setdefault((member_id, place), []).append(offset)
    return now
