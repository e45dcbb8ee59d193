"""The tasks and commits of members of a streams group, checked against G1 to G6.

The members' reports are checked as for consumer groups (`group_history`), with active tasks in place of partitions. In
the log no active task has two owners, and no process has a task twice (G6): its threads share a state directory, so a
standby task never runs beside its active one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.records import GroupRecord
from millbeck.coordinator.group.streams.member import StreamsMember
from millbeck.coordinator.group.streams.records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
)
from millbeck.coordinator.group.streams.tasks import Task
from millbeck.simulation.histories.group_history import TWO_OWNERS, GroupHistory, LogFacts
from millbeck.simulation.histories.history import Anomaly

TWICE_IN_A_PROCESS: Final = "twice in a process"


class StreamsHistory(GroupHistory):
    def read_log(self, log: Sequence[tuple[int, GroupRecord]]) -> LogFacts:
        reading = _Reading()
        for offset, record in log:
            reading.add(record, offset)
        return reading.facts


class _Reading:
    def __init__(self) -> None:
        self.facts = LogFacts()
        self._epoch = 0
        self._target_epoch = 0
        self._processes: dict[str, str] = {}
        self._members: dict[str, StreamsMember] = {}

    def add(self, record: GroupRecord, offset: int) -> None:
        key, value = record.key, record.value
        match key, value:
            case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
                self.facts.check_epoch("the group's epoch", self._epoch, value.epoch, offset)
                self._epoch = value.epoch
            case StreamsGroupTargetAssignmentMetadataKey(), StreamsGroupTargetAssignmentMetadataValue():
                self.facts.check_epoch("the target's epoch", self._target_epoch, value.assignment_epoch, offset)
                self._target_epoch = value.assignment_epoch
            case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
                self._processes[key.member_id] = value.process_id
            case StreamsGroupMemberMetadataKey(), None:
                self.facts.removed_at.setdefault(key.member_id, []).append(offset)
            case StreamsGroupCurrentMemberAssignmentKey(), StreamsGroupCurrentMemberAssignmentValue():
                self._take(StreamsMember(member_id=key.member_id).with_current(value), offset)
            case StreamsGroupCurrentMemberAssignmentKey(), None:
                self._members.pop(key.member_id, None)

    def _take(self, member: StreamsMember, offset: int) -> None:
        before = self._members.pop(member.member_id, None)
        process = self._processes.get(member.member_id)
        own = [*_tasks(member, is_active=True), *_tasks(member, is_active=False)]
        if len(set(own)) < len(own):
            self._found(TWICE_IN_A_PROCESS, f"{member.member_id} has a task in two roles at {offset}")
        for other in self._members.values():
            shared = set(_tasks(member, is_active=True)) & set(_tasks(other, is_active=True))
            if shared:
                self._found(TWO_OWNERS, f"{member.member_id} has {shared} at {offset}, and so has {other.member_id}")
            both = set(own) & {*_tasks(other, is_active=True), *_tasks(other, is_active=False)}
            if both and process == self._processes.get(other.member_id):
                self._found(TWICE_IN_A_PROCESS, f"{process} has {both} in two threads at {offset}")
        self._members[member.member_id] = member
        had = set() if before is None else set(assignment.places_of(before.assigned.active))
        for name, partition in assignment.places_of(member.assigned.active):
            if (name, partition) not in had:
                place = (member.member_id, (name.encode(), partition))
                self.facts.granted_at.setdefault(place, []).append(offset)

    def _found(self, kind: str, text: str) -> None:
        self.facts.anomalies.append(Anomaly(kind, text))


def _tasks(member: StreamsMember, *, is_active: bool) -> list[Task]:
    """The tasks that a member has, and those that it may still have."""
    roles = [tasks.active if is_active else tasks.standby for tasks in (member.assigned, member.revoking)]
    return [task for role in roles for task in assignment.places_of(role)]
