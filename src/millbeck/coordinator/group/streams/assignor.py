"""The ``sticky`` assignor, with the same decisions as Kafka's: tasks are balanced over members and processes, and few
are moved.

Active tasks first: a task stays with the member that has it, else goes to one that has its standby, as long as that
member does not exceed its share; the remaining tasks are assigned to the least loaded process. Then standby tasks of
stateful subtopologies in the same way, never to a process that has the task already: its members share a host and its
disk.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.streams.tasks import Task, TaskSet


class MemberSpecification(NamedTuple):
    member_id: str
    process_id: str
    target: TaskSet
    """The member's tasks in the previous assignment."""


class SubtopologySpecification(NamedTuple):
    task_count: int
    is_stateful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignmentInput:
    """The input of the assignor; immutable, so that it may be used on another thread."""

    epoch: int
    members: Sequence[MemberSpecification]
    subtopologies: Mapping[str, SubtopologySpecification]
    """The subtopologies by id, ascending; empty while the topology cannot run, and then members have no tasks."""
    standby_count: int

    @property
    def size(self) -> int:
        return len(self.members) + sum(each.task_count for each in self.subtopologies.values())


Solution = Mapping[str, TaskSet]


def assign(problem: AssignmentInput) -> Solution:
    return (
        _Assignment(problem).solve()
        if problem.subtopologies
        else {each.member_id: TaskSet() for each in problem.members}
    )


@dataclass(slots=True, eq=False)
class _Process:
    """The members of a process, with the tasks assigned to them."""

    number: int
    counts: dict[str, int] = field(default_factory=dict)
    """The tasks of each member."""
    tasks: set[Task] = field(default_factory=set)

    @property
    def load(self) -> float:
        return len(self.tasks) / len(self.counts)

    def least_loaded_member(self) -> str:
        return min(self.counts, key=lambda member: self.counts[member])


class _Share:
    """The maximum number of tasks per member when they are spread evenly. The number is rounded up; when a member
    has reached it, the remaining tasks are spread over the other members."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.limit = -(-tasks // members)

    def given(self, count: int) -> None:
        """Record that a member has ``count`` tasks now."""
        if count == self.limit:
            self._members -= 1
            self._tasks -= count
            self.limit = -(-self._tasks // self._members) if self._members else 0


class _Assignment:
    def __init__(self, problem: AssignmentInput) -> None:
        self._problem = problem
        self._processes: dict[str, _Process] = {}
        self._process_of: dict[str, _Process] = {}
        self._active_before: dict[Task, str] = {}
        self._standby_before: dict[Task, list[str]] = {}
        self._active: dict[str, list[Task]] = {}
        self._standby: dict[str, list[Task]] = {}
        for member_id, process_id, target in problem.members:
            process = self._processes.setdefault(process_id, _Process(len(self._processes)))
            process.counts[member_id] = 0
            self._process_of[member_id] = process
            self._active[member_id], self._standby[member_id] = [], []
            self._active_before.update(dict.fromkeys(assignment.places_of(target.active), member_id))
            for task in assignment.places_of(target.standby):
                self._standby_before.setdefault(task, []).append(member_id)
        self._active_tasks = [
            (name, index) for name, each in problem.subtopologies.items() for index in range(each.task_count)
        ]
        self._stateful_tasks = [task for task in self._active_tasks if problem.subtopologies[task[0]].is_stateful]
        total = len(self._active_tasks) + len(self._stateful_tasks) * problem.standby_count
        self._active_share = _Share(len(self._active_tasks), len(problem.members))
        self._share = _Share(total, len(problem.members))

    def solve(self) -> Solution:
        self._assign_active()
        if self._problem.standby_count:
            self._assign_standby()
        return {
            member_id: TaskSet(
                assignment.gathered(self._active[member_id]), assignment.gathered(self._standby[member_id])
            )
            for member_id in self._process_of
        }

    def _assign_active(self) -> None:
        # Tasks of one partition together: most members have the same partitions of all subtopologies.
        first = sorted(self._active_tasks, key=_by_partition)
        second = [task for task in first if not self._give_active(task, self._active_before.get(task))]
        rest = [task for task in second if not self._give_active(task, self._holder_of_standby(task))]
        queue = self._queue()
        for task in sorted(rest):
            _, number, process = heapq.heappop(queue)
            self._add(process.least_loaded_member(), task, is_active=True)
            heapq.heappush(queue, (process.load, number, process))

    def _give_active(self, task: Task, member_id: str | None) -> bool:
        if member_id is None or self._process_of[member_id].counts[member_id] >= self._active_share.limit:
            return False
        self._add(member_id, task, is_active=True)
        return True

    def _add(self, member_id: str, task: Task, *, is_active: bool) -> None:
        process = self._process_of[member_id]
        process.tasks.add(task)
        process.counts[member_id] += 1
        (self._active if is_active else self._standby)[member_id].append(task)
        if is_active:
            self._active_share.given(process.counts[member_id])
        self._share.given(process.counts[member_id])

    def _holder_of_standby(self, task: Task) -> str | None:
        return self._least_loaded(self._standby_before.get(task, ()))

    def _least_loaded(self, members: Iterable[str], task: Task | None = None) -> str | None:
        """The least loaded of the members: one replaces another only if both the load of its process and its own number
        of tasks are lower. With ``task``, members whose process has the task do not qualify; None if no member is
        found."""
        candidates = list(members)
        if not candidates:
            return None
        best = candidates[0]
        for member_id in candidates[1:]:
            process, other = self._process_of[member_id], self._process_of[best]
            is_better = process.load < other.load and process.counts[member_id] < other.counts[best]
            if is_better and (task is None or task not in process.tasks):
                best = member_id
        return best if task is None or task not in self._process_of[best].tasks else None

    def _assign_standby(self) -> None:
        left: list[tuple[Task, int]] = []
        for task in sorted(self._stateful_tasks, key=_by_partition, reverse=True):
            for given in range(self._problem.standby_count):
                if not self._give_standby(task):
                    left.append((task, self._problem.standby_count - given))
                    break
        queue = self._queue()
        for task, count in sorted(left, reverse=True):
            for _ in range(count):
                if not self._give_to_least_loaded(queue, task):
                    # There are fewer processes than copies.
                    break

    def _give_standby(self, task: Task) -> bool:
        """Assign a standby task to the member that had the active task, or one of its standby tasks, before."""
        before = self._active_before.get(task)
        candidates = [before, self._least_loaded(self._standby_before.get(task, ()), task)]
        for member_id in candidates:
            if member_id is None:
                continue
            process = self._process_of[member_id]
            if task not in process.tasks and process.counts[member_id] < self._share.limit:
                self._add(member_id, task, is_active=False)
                return True
        return False

    def _queue(self) -> list[tuple[float, int, _Process]]:
        queue = [(process.load, process.number, process) for process in self._processes.values()]
        heapq.heapify(queue)
        return queue

    def _give_to_least_loaded(self, queue: list[tuple[float, int, _Process]], task: Task) -> bool:
        skipped = []
        is_given = False
        while queue and not is_given:
            load, number, process = heapq.heappop(queue)
            if task not in process.tasks:
                self._add(process.least_loaded_member(), task, is_active=False)
                load, is_given = process.load, True
            skipped.append((load, number, process))
        for entry in skipped:
            heapq.heappush(queue, entry)
        return is_given


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]
