"""The loop knows whether one descriptor alone has woken it."""

from __future__ import annotations

import asyncio
import socket

import pytest

from millbeck.host.loop import HostLoop


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("has_epoll", [True, False])
def test_it_counts_what_was_ready(count: int, has_epoll: bool) -> None:
    async def main() -> list[bool]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HostLoop)
        pairs = [socket.socketpair() for _ in range(count)]
        answers: list[bool] = []
        done = loop.create_future()

        def ready(receiver: socket.socket) -> None:
            receiver.recv(1)
            answers.append(loop.serves_one_event())
            if len(answers) == count:
                done.set_result(None)

        for receiver, sender in pairs:
            loop.add_reader(receiver, ready, receiver)
            sender.send(b"x")
        await done
        for receiver, sender in pairs:
            loop.remove_reader(receiver)
            receiver.close()
            sender.close()
        return answers

    with asyncio.Runner(loop_factory=lambda: HostLoop(has_epoll=has_epoll)) as runner:
        assert runner.run(main()) == [count == 1] * count


def test_a_timer_is_alone() -> None:
    async def main() -> bool:
        await asyncio.sleep(0.001)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HostLoop)
        return loop.serves_one_event()

    with asyncio.Runner(loop_factory=HostLoop) as runner:
        assert runner.run(main())
