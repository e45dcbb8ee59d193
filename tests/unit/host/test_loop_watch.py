"""A callback that holds the event loop is named, with the time that it took."""

from __future__ import annotations

import asyncio
import sys
import threading
import time

from millbeck.host.loop_watch import _watches, holder_of, watch_loop

Held = list[tuple[float, str | None]]


def blocks_inside(seconds: float) -> None:
    time.sleep(seconds)


async def program(seconds: float) -> None:
    await asyncio.sleep(0.05)
    blocks_inside(seconds)


def test_a_coroutine_that_blocks_is_named_at_once_when_it_ends() -> None:
    async def scenario() -> Held:
        held: Held = []
        stop = watch_loop(0.2, lambda *found: held.append(found))
        await asyncio.sleep(0.3)
        assert held == []
        await asyncio.create_task(program(0.8))
        await asyncio.sleep(0.1)
        stop()
        return held

    ((held_s, holder),) = asyncio.run(scenario())
    assert 0.4 <= held_s <= 2
    assert holder is not None
    assert holder.startswith("program (test_loop_watch.py:")
    assert "which was at test_loop_watch.py:" in holder


def test_a_plain_callback_is_named() -> None:
    async def scenario() -> Held:
        held: Held = []
        stop = watch_loop(0.2, lambda *found: held.append(found))
        asyncio.get_running_loop().call_soon(blocks_inside, 0.8)
        await asyncio.sleep(0.1)
        await asyncio.sleep(0.4)
        stop()
        return held

    ((_, holder),) = asyncio.run(scenario())
    assert holder is not None
    assert holder.startswith("blocks_inside (test_loop_watch.py:")


def watching_threads() -> int:
    return sum(thread.name == "millbeck-loop-watch" for thread in threading.enumerate())


async def until_none_watches() -> None:
    deadline_s = time.monotonic() + 5
    while watching_threads():
        assert time.monotonic() < deadline_s
        await asyncio.sleep(0.05)


def test_clients_of_a_loop_share_one_thread_which_ends_with_the_last() -> None:
    async def scenario() -> None:
        await until_none_watches()
        stops = [watch_loop(limit_s, lambda *_: None) for limit_s in (5.0, 3.0, 9.0)]
        assert watching_threads() == 1
        for stop in stops[1:]:
            stop()
        assert _watches[asyncio.get_running_loop()].is_running
        stops[0]()
        stops[0]()
        await until_none_watches()
        again = watch_loop(5.0, lambda *_: None)
        assert _watches[asyncio.get_running_loop()].is_running
        again()

    asyncio.run(scenario())


def test_a_loop_that_waits_is_held_by_nobody() -> None:
    found: list[str | None] = []

    def look(thread_id: int) -> None:
        time.sleep(0.2)
        found.append(holder_of(sys._current_frames()[thread_id]))

    async def scenario() -> None:
        await asyncio.to_thread(look, threading.get_ident())

    asyncio.run(scenario())
    assert found == [None]
