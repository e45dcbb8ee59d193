"""State of one streams group. Immutable: replaying a record makes a new value.

There are four epochs. The group epoch is raised whenever members, topics, the topology's validity or the assignor's
settings change; the assignment epoch is the group epoch that the target was computed for; a member epoch is the
assignment epoch that the member has reconciled to; the topology epoch is the application's own version of its topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Final

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.streams.member import LEAVE_EPOCH, StreamsMember
from millbeck.coordinator.group.streams.records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTopologyKey,
)
from millbeck.coordinator.group.streams.tasks import NO_TASKS, Task, TaskSet
from millbeck.coordinator.group.streams.topology import Topology
from millbeck.kernel import errors

TYPE_NAME: Final = "streams"
PROTOCOL_TYPE: Final = "streams"

FIRST_EPOCH: Final = 1
"""Group and assignment epoch of a new group, as in Kafka: its first assignment has epoch 2."""
NO_EPOCH: Final = -1
NOBODY: Final = frozenset[str]()


class StreamsGroupState(Enum):
    """States of a streams group; values are the names shown to clients."""

    EMPTY = "Empty"
    NOT_READY = "NotReady"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class Holders:
    """The current owners of each task, including tasks that are being revoked: by process, since its threads share
    state."""

    active: Mapping[Task, str]
    copies: Mapping[Task, frozenset[str]]
    """The processes with a standby or warm-up task."""

    @classmethod
    def of(cls, members: Iterable[StreamsMember]) -> Holders:
        active: dict[Task, str] = {}
        copies: dict[Task, frozenset[str]] = {}
        for member in members:
            _hold(active, copies, member)
        return cls(active, copies)

    def moved(self, before: StreamsMember | None, after: StreamsMember | None) -> Holders:
        """The owners after a change of one member; cheaper than counting all members at each heartbeat."""
        if before is not None and after is not None and _held(before) == _held(after):
            return self
        active, copies = dict(self.active), dict(self.copies)
        if before is not None:
            _release(active, copies, before)
        if after is not None:
            _hold(active, copies, after)
        return Holders(active, copies)


def _held(member: StreamsMember) -> tuple[str, TaskSet, TaskSet]:
    return member.process_id, member.assigned, member.revoking


def _tasks(member: StreamsMember, *, is_active: bool) -> Iterator[Task]:
    for tasks in (member.assigned, member.revoking):
        for role in (tasks.active,) if is_active else (tasks.standby, tasks.warmup):
            yield from assignment.places_of(role)


def _hold(active: dict[Task, str], copies: dict[Task, frozenset[str]], member: StreamsMember) -> None:
    active.update(dict.fromkeys(_tasks(member, is_active=True), member.process_id))
    for task in _tasks(member, is_active=False):
        copies[task] = copies.get(task, NOBODY) | {member.process_id}


def _release(active: dict[Task, str], copies: dict[Task, frozenset[str]], member: StreamsMember) -> None:
    for task in _tasks(member, is_active=True):
        # Another member may have it now if this is an old record that is reverted late.
        if active.get(task) == member.process_id:
            del active[task]
    for task in _tasks(member, is_active=False):
        left = copies.get(task, NOBODY) - {member.process_id}
        if left:
            copies[task] = left
        else:
            copies.pop(task, None)


@dataclass(frozen=True, kw_only=True)
class StreamsGroup:
    group_id: str
    epoch: int = FIRST_EPOCH
    metadata_hash: int = 0
    validated_topology_epoch: int = 0
    assignment_configs: tuple[tuple[str, str], ...] = ()
    """The assignor's settings at the last group epoch."""
    assignment_epoch: int = FIRST_EPOCH
    assigned_at_ms: int = 0
    topology: Topology | None = None
    members: Mapping[str, StreamsMember] = field(default_factory=dict)
    targets: Mapping[str, TaskSet] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def is_validated(self) -> bool:
        """Whether all topics of the topology existed with suitable partition counts at the last group epoch."""
        return self.topology is not None and self.topology.epoch == self.validated_topology_epoch

    @property
    def state(self) -> StreamsGroupState:
        if not self.members:
            return StreamsGroupState.EMPTY
        if not self.is_validated:
            return StreamsGroupState.NOT_READY
        if self.epoch > self.assignment_epoch:
            return StreamsGroupState.ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return StreamsGroupState.STABLE
        return StreamsGroupState.RECONCILING

    def member(self, member_id: str) -> StreamsMember:
        found = self.members.get(member_id)
        if found is None:
            raise errors.UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return found

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.readers

    @cached_property
    def holders(self) -> Holders:
        return Holders.of(self.members.values())

    # Replaying

    def replayed(self, key: Any, value: Any) -> StreamsGroup:
        """Return the group after a record. Tombstones of the group itself are handled by the caller."""
        match key:
            case StreamsGroupMetadataKey():
                configs = tuple((each.key, each.value) for each in value.last_assignment_configs or ())
                return self._changed(
                    epoch=value.epoch,
                    metadata_hash=value.metadata_hash,
                    validated_topology_epoch=value.validated_topology_epoch,
                    assignment_configs=configs,
                )
            case StreamsGroupTopologyKey():
                return self._changed(topology=None if value is None else Topology.from_wire(value))
            case StreamsGroupTargetAssignmentMetadataKey():
                return self._changed(
                    assignment_epoch=NO_EPOCH if value is None else value.assignment_epoch,
                    assigned_at_ms=0 if value is None else value.assignment_timestamp,
                )
            case StreamsGroupTargetAssignmentMemberKey():
                target = None
                if value is not None:
                    target = TaskSet.of(value.active_tasks, value.standby_tasks, value.warmup_tasks)
                return self._changed(targets=_with(self.targets, key.member_id, target))
            case StreamsGroupMemberMetadataKey():
                made = None if value is None else self._member_or_new(key.member_id).with_metadata(value)
                return self._with_member(key.member_id, made)
            case StreamsGroupCurrentMemberAssignmentKey():
                if value is None and key.member_id not in self.members:
                    return self
                gone = StreamsGroupCurrentMemberAssignmentValue(LEAVE_EPOCH, LEAVE_EPOCH)
                # Compaction may have kept this record before the member's metadata record.
                moved = self._member_or_new(key.member_id).with_current(value or gone)
                return self._with_member(key.member_id, moved)
            case _:
                raise AssertionError(f"not a record of a streams group: {key!r}")

    def _changed(self, **changes: Any) -> StreamsGroup:
        """The group with changed fields; its members, and so the owners of tasks, are the same."""
        changed = replace(self, **changes)
        if "holders" in self.__dict__:
            changed.__dict__["holders"] = self.holders
        return changed

    def _with_member(self, member_id: str, member: StreamsMember | None) -> StreamsGroup:
        changed = replace(self, members=_with(self.members, member_id, member))
        if "holders" in self.__dict__:
            changed.__dict__["holders"] = self.holders.moved(self.members.get(member_id), member)
        return changed

    def _member_or_new(self, member_id: str) -> StreamsMember:
        return self.members.get(member_id) or StreamsMember(member_id=member_id)

    def target_of(self, member_id: str) -> TaskSet:
        return self.targets.get(member_id, NO_TASKS)


def _with(entries: Mapping[str, Any], key: str, value: Any) -> Mapping[str, Any]:
    """The entries with one replaced, or removed when the value is None."""
    changed = dict(entries)
    if value is None:
        changed.pop(key, None)
    else:
        changed[key] = value
    return changed
