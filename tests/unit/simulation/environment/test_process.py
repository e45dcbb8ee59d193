"""Whose code is running."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.simulation.environment import process as process_module
from millbeck.simulation.environment.process import KERNEL, PROCESS, Process


def test_a_process_is_known_inside_its_context_only() -> None:
    process = Process("n1/1", "n1")
    assert process.context.run(PROCESS.get) is process
    assert PROCESS.get() is None
    assert KERNEL.run(PROCESS.get) is None
    assert repr(process) == "<n1/1>"


def test_finished_tasks_are_swept_and_the_others_kept_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_module, "_TASKS_BEFORE_SWEEP", 4)

    async def scenario() -> None:
        process = Process("n1/1", "n1")
        process._sweep_at = 4
        waiting = [asyncio.ensure_future(asyncio.sleep(60)) for _ in range(3)]
        for task in waiting:
            process.remember(task)
        for _ in range(50):
            done = asyncio.ensure_future(asyncio.sleep(0))
            await done
            process.remember(done)
        assert len(process.tasks) <= 9
        assert process.unfinished_tasks() == waiting
        for task in waiting:
            task.cancel()

    asyncio.run(scenario())
