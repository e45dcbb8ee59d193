"""Which tasks of a connector may work now, and when a failed one is tried again. Pure: time is an argument.

    running ──share failed, may be tried again──▶ waiting ──its time has come──▶ running
       │                                             │
       └──share failed for good─────────▶ failed ◀───┘ policy none
                                             └──restart──▶ running

A failing share keeps its task's number, and what it reads (the partitions of a sink, the key of a source's share) is
left out of the others' work until its next attempt. Other tasks go on.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Generic, TypeVar

from millbeck.pipeline.connect.tasks.work import FailureKind, ShareFailure

S = TypeVar("S")

FIRST_DELAY_S: Final = 1.0
ALL: Final = "all of the connector's work"
"""The key of a share that has none."""


class Condition(Enum):
    RUNNING = "running"
    WAITING = "waiting"
    FAILED = "failed"


@dataclass(slots=True)
class TaskState:
    """One task."""

    condition: Condition = Condition.RUNNING
    failure: ShareFailure | None = None
    failures: int = 0
    retry_s: float = 0.0
    """When it is tried again, if it waits."""
    keys: tuple[Hashable, ...] = ()
    """What its failed share reads."""


@dataclass(slots=True)
class Placed(Generic[S]):
    """A share with the number of its task."""

    task: int
    share: S
    attempt: int


@dataclass(slots=True)
class Supervision:
    """The tasks of one connector."""

    task_count: int
    retries: bool = True
    delay_max_s: float = 60.0
    tasks: dict[int, TaskState] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number in range(self.task_count):
            self.tasks.setdefault(number, TaskState())

    # before a turn

    def excluded(self, now_s: float) -> set[Hashable]:
        """What may not be read now."""
        return {key for state in self.tasks.values() if self._rests(state, now_s) for key in state.keys}

    def may_plan(self, now_s: float) -> bool:
        """Whether any task may work."""
        if ALL in self.excluded(now_s):
            return False
        return any(not self._rests(state, now_s) for state in self.tasks.values())

    def next_attempt_s(self) -> float | None:
        """When the next waiting task may be tried again."""
        return min(
            (state.retry_s for state in self.tasks.values() if state.condition is Condition.WAITING), default=None
        )

    def place(self, shares: Sequence[tuple[tuple[Hashable, ...], S]], now_s: float) -> list[Placed[S]]:
        """Give each share, with the keys that it reads, a task that does not rest; what is excluded is left out, and
        what finds no task is planned again later."""
        excluded = self.excluded(now_s)
        free = [number for number, state in self.tasks.items() if not self._rests(state, now_s)]
        owners = {key: number for number in free for key in self.tasks[number].keys}
        placed: list[Placed[S]] = []
        rest: list[S] = []
        for keys, share in shares:
            if any(key in excluded for key in keys):
                continue
            # A share that is tried again is counted with the task that failed at it.
            owner = next((owners[key] for key in keys if key in owners and owners[key] in free), None)
            if owner is None:
                rest.append(share)
            else:
                free.remove(owner)
                placed.append(Placed(owner, share, self.tasks[owner].failures + 1))
        fresh = sorted(free, key=lambda number: (self.tasks[number].failures > 0, number))
        placed += [
            Placed(number, share, self.tasks[number].failures + 1) for number, share in zip(fresh, rest, strict=False)
        ]
        return sorted(placed, key=lambda each: each.task)

    def _rests(self, state: TaskState, now_s: float) -> bool:
        if state.condition is Condition.FAILED:
            return True
        return state.condition is Condition.WAITING and now_s < state.retry_s

    # after a share

    def succeeded(self, task: int) -> None:
        self.tasks[task] = TaskState()

    def failed(self, task: int, keys: tuple[Hashable, ...], failure: ShareFailure, now_s: float) -> TaskState:
        """Note a failure; the state tells what follows."""
        state = self.tasks[task]
        state.failure = failure
        state.failures += 1
        state.keys = keys
        if failure.kind is FailureKind.FATAL or not self.retries:
            state.condition = Condition.FAILED
        else:
            state.condition = Condition.WAITING
            state.retry_s = now_s + min(self.delay_max_s, FIRST_DELAY_S * 2.0 ** min(state.failures - 1, 16))
        return state

    def restart(self, task: int) -> None:
        """By a request: a task begins anew."""
        if task in self.tasks:
            self.tasks[task] = TaskState()
