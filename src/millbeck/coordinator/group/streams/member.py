"""One member of a streams group, which is one thread of a process. Immutable: each change makes a new value.

States
    STABLE             has the target tasks of its epoch
    UNREVOKED_TASKS    was asked to revoke tasks and has not confirmed it; stays at its epoch until then
    UNRELEASED_TASKS   is at the target's epoch and waits for tasks that other members or processes still have
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

from millbeck.coordinator.group.streams.records import (
    HeldTasks,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)
from millbeck.coordinator.group.streams.tasks import NO_TASKS, Task, Tasks, TaskSet, to_wire
from millbeck.wire.messages.streams_groups import Endpoint, KeyValue, StreamsAssignment, StreamsGroupMember

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
NO_TOPOLOGY_EPOCH = -1


class MemberState(IntEnum):
    STABLE = 1
    UNREVOKED_TASKS = 2
    UNRELEASED_TASKS = 3
    UNKNOWN = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsMember:
    member_id: str
    instance_id: str | None = None
    """The instance id, kept as read; static members are refused when they join."""
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = NO_TOPOLOGY_EPOCH
    process_id: str = ""
    user_endpoint: tuple[str, int] | None = None
    client_tags: tuple[tuple[str, str], ...] = ()
    """The client's tags, in ascending order of their keys."""
    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: MemberState = MemberState.STABLE
    assigned: TaskSet = NO_TASKS
    revoking: TaskSet = NO_TASKS
    """Tasks that the member must revoke and may still be running."""
    active_epochs: Mapping[Task, int] = field(default_factory=dict)
    """The member epoch at which each active task was assigned (KIP-1251)."""

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def active_epoch(self, task: Task) -> int | None:
        """The member epoch at which an active task it may be running was assigned; None for other tasks."""
        subtopology_id, partition = task
        for held in (self.assigned.active, self.revoking.active):
            if partition in held.get(subtopology_id, ()):
                return self.active_epochs.get(task, self.epoch)
        return None

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        return replace(
            self,
            instance_id=value.instance_id,
            rack_id=value.rack_id,
            client_id=value.client_id,
            client_host=value.client_host,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            topology_epoch=value.topology_epoch,
            process_id=value.process_id,
            user_endpoint=endpoint_of(value.user_endpoint),
            client_tags=tags_of(value.client_tags),
        )

    def with_current(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        is_known = value.state in (MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS)
        return replace(
            self,
            epoch=value.member_epoch,
            previous_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if is_known else MemberState.UNKNOWN,
            assigned=TaskSet.of(value.active_tasks, value.standby_tasks, value.warmup_tasks),
            revoking=TaskSet.of(
                value.active_tasks_pending_revocation,
                value.standby_tasks_pending_revocation,
                value.warmup_tasks_pending_revocation,
            ),
            active_epochs={
                (each.subtopology_id, partition): epoch
                for each in (*value.active_tasks, *value.active_tasks_pending_revocation)
                for partition, epoch in zip(each.partitions, each.assignment_epochs or (), strict=False)
            },
        )

    def metadata_value(self) -> StreamsGroupMemberMetadataValue:
        return StreamsGroupMemberMetadataValue(
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=self.wire_endpoint(),
            client_tags=self.wire_tags(),
        )

    def current_value(self) -> StreamsGroupCurrentMemberAssignmentValue:
        return StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=self.epoch,
            previous_member_epoch=self.previous_epoch,
            state=int(self.state),
            active_tasks=self._held_active(self.assigned.active),
            standby_tasks=_held(self.assigned.standby),
            warmup_tasks=_held(self.assigned.warmup),
            active_tasks_pending_revocation=self._held_active(self.revoking.active),
            standby_tasks_pending_revocation=_held(self.revoking.standby),
            warmup_tasks_pending_revocation=_held(self.revoking.warmup),
        )

    def _held_active(self, tasks: Tasks) -> list[HeldTasks]:
        epochs = self.active_epochs
        return [
            HeldTasks(
                subtopology_id,
                list(partitions),
                [epochs.get((subtopology_id, each), self.epoch) for each in partitions],
            )
            for subtopology_id, partitions in tasks.items()
        ]

    def wire_endpoint(self) -> Endpoint | None:
        return None if self.user_endpoint is None else Endpoint(*self.user_endpoint)

    def wire_tags(self) -> list[KeyValue]:
        return [KeyValue(key, value) for key, value in self.client_tags]

    def described(self, target: TaskSet) -> StreamsGroupMember:
        return StreamsGroupMember(
            member_id=self.member_id,
            member_epoch=self.epoch,
            instance_id=self.instance_id,
            rack_id=self.rack_id,
            client_id=self.client_id,
            client_host=self.client_host,
            topology_epoch=self.topology_epoch,
            process_id=self.process_id,
            user_endpoint=self.wire_endpoint(),
            client_tags=self.wire_tags(),
            assignment=_described(self.assigned),
            target_assignment=_described(target),
        )


def endpoint_of(endpoint: Endpoint | None) -> tuple[str, int] | None:
    return None if endpoint is None else (endpoint.host, endpoint.port)


def tags_of(tags: Iterable[KeyValue]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({each.key: each.value for each in tags}.items()))


def _held(tasks: Tasks) -> list[HeldTasks]:
    return [HeldTasks(subtopology_id, list(partitions)) for subtopology_id, partitions in tasks.items()]


def _described(tasks: TaskSet) -> StreamsAssignment:
    return StreamsAssignment(to_wire(tasks.active), to_wire(tasks.standby), to_wire(tasks.warmup))
