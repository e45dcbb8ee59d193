"""The selector that runs callbacks itself: order, timers, threads, stops and errors come out as with asyncio's own."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

import pytest

from millbeck.host.loop import HostLoop

T = TypeVar("T")

if not hasattr(select, "epoll"):
    pytest.skip("epoll is Linux's", allow_module_level=True)


def _run(main: Callable[[HostLoop], Awaitable[T]]) -> T:
    async def inner() -> T:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HostLoop)
        async with asyncio.timeout(10):
            return await main(loop)

    with asyncio.Runner(loop_factory=HostLoop) as runner:
        return runner.run(inner())


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, peer = socket.socketpair()
    ours.setblocking(False)
    yield ours, peer
    ours.close()
    peer.close()


def test_a_callback_that_schedules_nothing_is_called_again_and_again_and_timers_still_run(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    """While a descriptor is always ready the loop is not gone round; a timer must come all the same."""
    ours, peer = pair
    calls = 0

    async def main(loop: HostLoop) -> None:
        def ready() -> None:
            nonlocal calls
            calls += 1

        peer.send(b"x")
        loop.add_reader(ours, ready)
        await asyncio.sleep(0.01)
        loop.remove_reader(ours)

    _run(main)
    assert calls > 10


def test_a_timer_that_a_callback_sets_is_not_slept_over(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, peer = pair

    async def main(loop: HostLoop) -> float:
        rang = loop.create_future()
        began = loop.time()

        def ready() -> None:
            ours.recv(10)
            loop.call_later(0.01, rang.set_result, None)

        loop.add_reader(ours, ready)
        loop.call_later(5, lambda: None)
        peer.send(b"x")
        await rang
        return loop.time() - began

    assert _run(main) < 2


def test_another_thread_wakes_it(pair: tuple[socket.socket, socket.socket]) -> None:
    async def main(loop: HostLoop) -> str:
        done: asyncio.Future[str] = loop.create_future()
        threading.Thread(target=loop.call_soon_threadsafe, args=(done.set_result, "woken")).start()
        return await done

    assert _run(main) == "woken"


def test_a_callback_may_stop_the_loop(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, peer = pair
    loop = HostLoop()
    try:
        loop.add_reader(ours, loop.stop)
        peer.send(b"x")
        loop.run_forever()
        assert not loop.is_running()
    finally:
        loop.close()


def test_a_callback_that_raises_is_reported_and_the_others_run(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, peer = pair

    async def main(loop: HostLoop) -> list[str]:
        reported: list[str] = []
        loop.set_exception_handler(lambda loop, context: reported.append(str(context["exception"])))
        done = loop.create_future()

        def ready() -> None:
            if ours.recv(1) == b"a":
                raise ValueError("a bug")
            done.set_result(None)

        loop.add_reader(ours, ready)
        peer.send(b"ab")
        await done
        return reported

    assert _run(main) == ["a bug"]


def test_what_one_callback_takes_off_is_not_called_in_the_same_look() -> None:
    pairs = [socket.socketpair() for _ in range(2)]

    async def main(loop: HostLoop) -> int:
        calls = 0

        def ready() -> None:
            nonlocal calls
            calls += 1
            for ours, _ in pairs:
                loop.remove_reader(ours)

        for ours, peer in pairs:
            loop.add_reader(ours, ready)
            peer.send(b"x")
        await asyncio.sleep(0.01)
        return calls

    try:
        assert _run(main) == 1
    finally:
        for one in pairs:
            for end in one:
                end.close()


def test_readers_and_writers_of_one_descriptor_are_apart(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, peer = pair

    async def main(loop: HostLoop) -> list[str]:
        calls: list[str] = []
        loop.add_writer(ours, calls.append, "writer")
        loop.add_reader(ours, calls.append, "reader")
        await asyncio.sleep(0)
        loop.remove_writer(ours)
        assert set(calls) <= {"writer"}
        calls.clear()
        peer.send(b"x")
        while not calls:
            await asyncio.sleep(0)
        loop.remove_reader(ours)
        return calls

    assert set(_run(main)) == {"reader"}


def test_a_descriptor_that_was_closed_too_early_can_be_taken_off() -> None:
    async def main(loop: HostLoop) -> bool:
        end, other = os.pipe()
        loop.add_reader(end, lambda: None)
        os.close(end)
        os.close(other)
        return loop.remove_reader(end)

    assert _run(main)


def test_the_loop_may_rest_when_one_descriptor_is_ready_and_nothing_is_queued(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    ours, peer = pair

    async def answers(loop: HostLoop) -> list[bool]:
        found: list[bool] = []
        done = loop.create_future()

        def readable() -> None:
            ours.recv(1)
            found.append(loop.may_rest())
            loop.call_soon(int)
            found.append(loop.may_rest())
            loop.remove_reader(ours)
            done.set_result(None)

        loop.add_reader(ours, readable)
        peer.send(b"x")
        await done
        return found

    assert _run(answers) == [True, False]
