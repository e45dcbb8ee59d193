"""Tasks of a streams group. A task is a subtopology and a partition: it reads that partition of each source topic.

A member has active tasks, which process records, and standby tasks, which only keep a copy of an active task's state.
Warm-up tasks are part of the messages and records, but no assignor assigns any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from millbeck.coordinator.group.consumer import assignment
from millbeck.wire.messages.streams_groups import TaskIds

Task = tuple[str, int]
Tasks = Mapping[str, tuple[int, ...]]
"""Partitions by id of the subtopology, both ascending."""


class TasksLike(Protocol):
    """Structural type of the tasks in requests and records."""

    subtopology_id: str
    partitions: list[int]


@dataclass(frozen=True, slots=True)
class TaskSet:
    """The tasks of a member by role. Immutable."""

    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    warmup: Tasks = field(default_factory=dict)

    @classmethod
    def of(
        cls, active: Iterable[TasksLike], standby: Iterable[TasksLike] = (), warmup: Iterable[TasksLike] = ()
    ) -> TaskSet:
        return cls(from_wire(active), from_wire(standby), from_wire(warmup))

    def __bool__(self) -> bool:
        return bool(self.active or self.standby or self.warmup)

    def has_any_of(self, other: TaskSet) -> bool:
        """Whether this set and ``other`` have a task in the same role."""
        return any(assignment.shared(mine, theirs) for mine, theirs in zip(self.roles, other.roles, strict=True))

    def is_within(self, other: TaskSet) -> bool:
        return all(assignment.is_within(mine, theirs) for mine, theirs in zip(self.roles, other.roles, strict=True))

    @property
    def roles(self) -> tuple[Tasks, Tasks, Tasks]:
        return self.active, self.standby, self.warmup


NO_TASKS = TaskSet()


def from_wire(tasks: Iterable[TasksLike]) -> Tasks:
    return assignment.gathered((each.subtopology_id, partition) for each in tasks for partition in each.partitions)


def to_wire(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id, list(partitions)) for subtopology_id, partitions in tasks.items()]
