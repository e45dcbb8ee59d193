"""Deadlines come once, never early, and one broken callback does not cost the others theirs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from millbeck.kernel.environment import Environment
from millbeck.server.loop.deadlines import Deadlines
from millbeck.simulation import World


def timed(scenario: Callable[[Deadlines, list[Exception]], Coroutine[Any, Any, None]]) -> None:
    async def whole(environment: Environment) -> None:
        errors: list[Exception] = []
        deadlines = Deadlines(asyncio.get_running_loop(), errors.append)
        await scenario(deadlines, errors)
        deadlines.close()

    with World(3) as world:
        world.run(whole, limit_s=10_000)


def test_callbacks_come_in_order_once_and_never_early() -> None:
    async def scenario(deadlines: Deadlines, errors: list[Exception]) -> None:
        loop = asyncio.get_running_loop()
        generator = random.Random(4)
        fired: list[tuple[int, float]] = []
        began = loop.time()
        delays = [generator.randrange(0, 5000) for _ in range(300)]
        for delay_ms in delays:
            deadlines.after(delay_ms, lambda delay_ms=delay_ms: fired.append((delay_ms, loop.time() - began)))  # type: ignore[misc]
        await asyncio.sleep(6)
        assert [delay_ms for delay_ms, _ in fired] == sorted(delays)
        assert all(delay_ms / 1000 <= seconds <= delay_ms / 1000 + 0.01 for delay_ms, seconds in fired)
        assert len(deadlines) == 0

    timed(scenario)


def test_a_cancelled_timer_is_silent() -> None:
    async def scenario(deadlines: Deadlines, errors: list[Exception]) -> None:
        fired: list[str] = []
        timer = deadlines.after(100, lambda: fired.append("cancelled"))
        deadlines.after(200, lambda: fired.append("kept"))
        assert len(deadlines) == 2
        timer.cancel()
        await asyncio.sleep(1)
        assert fired == ["kept"]

    timed(scenario)


def test_an_earlier_deadline_overtakes_a_later_one() -> None:
    async def scenario(deadlines: Deadlines, errors: list[Exception]) -> None:
        fired: list[str] = []
        deadlines.after(60_000, lambda: fired.append("late"))
        deadlines.after(10, lambda: fired.append("early"))
        await asyncio.sleep(0.1)
        assert fired == ["early"]
        await asyncio.sleep(60)
        assert fired == ["early", "late"]

    timed(scenario)


def test_a_callback_may_set_the_next_deadline() -> None:
    async def scenario(deadlines: Deadlines, errors: list[Exception]) -> None:
        fired: list[int] = []

        def again() -> None:
            fired.append(len(fired))
            if len(fired) < 50:
                deadlines.after(7, again)

        deadlines.after(0, again)
        await asyncio.sleep(1)
        assert fired == list(range(50))

    timed(scenario)


def test_what_a_callback_raises_is_reported_and_the_others_go_on() -> None:
    async def scenario(deadlines: Deadlines, errors: list[Exception]) -> None:
        fired: list[str] = []
        deadlines.after(5, lambda: 1 // 0)  # type: ignore[arg-type]
        deadlines.after(5, lambda: fired.append("same moment"))
        deadlines.after(50, lambda: fired.append("later"))
        await asyncio.sleep(1)
        assert fired == ["same moment", "later"]
        assert [type(error) for error in errors] == [ZeroDivisionError]

    timed(scenario)


def test_nothing_comes_after_closing() -> None:
    async def scenario(deadlines: Deadlines, errors: list[Exception]) -> None:
        fired: list[str] = []
        deadlines.after(5, lambda: fired.append("too late"))
        deadlines.close()
        await asyncio.sleep(1)
        assert fired == []

    timed(scenario)
