"""A simulated process: identifies the code that belongs to it and whether that may run.

Every callback carries the context in which it was scheduled, and the context carries the process. So killing a process
only sets a flag: the loop drops its callbacks, no ``finally`` block runs, and its coroutines are kept referenced so
that the garbage collector does not run them either.
"""

from __future__ import annotations

import asyncio
import contextvars
from typing import Any

PROCESS: contextvars.ContextVar[Process | None] = contextvars.ContextVar("simulated_process", default=None)

# The context of callbacks outside every process: network, disk and clock.
KERNEL = contextvars.Context()

_TASKS_BEFORE_SWEEP = 64


class Process:
    """A simulated process; ``is_held`` is True while its callbacks must not run, because it is dead or stopped."""

    __slots__ = (
        "_sweep_at",
        "context",
        "held",
        "hold_count",
        "is_alive",
        "is_harness",
        "is_held",
        "machine_name",
        "name",
        "tasks",
    )

    def __init__(self, name: str, machine_name: str, *, is_harness: bool = False) -> None:
        self.name = name
        self.is_harness = is_harness
        self.machine_name = machine_name
        self.is_alive = True
        self.is_held = False
        self.hold_count = 0
        self.held: list[asyncio.Handle] = []
        # Insertion-ordered and strong: a task that only its own callbacks refer to must not be collected by a crash.
        self.tasks: dict[asyncio.Task[Any], None] = {}
        self._sweep_at = _TASKS_BEFORE_SWEEP
        self.context = contextvars.Context()
        self.context.run(PROCESS.set, self)

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def remember(self, task: asyncio.Task[Any]) -> None:
        self.tasks[task] = None
        if len(self.tasks) > self._sweep_at:
            self.tasks = {known: None for known in self.tasks if not known.done()}
            self._sweep_at = max(_TASKS_BEFORE_SWEEP, 2 * len(self.tasks))

    def unfinished_tasks(self) -> list[asyncio.Task[Any]]:
        return [task for task in self.tasks if not task.done()]
