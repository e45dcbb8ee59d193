"""Clients without a loop of the caller's own."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.client.blocking import Blocking
from millbeck.kernel.environment import Environment


class Client:
    closed: list[str] = []

    def __init__(self, environment: Environment, name: str) -> None:
        asyncio.get_running_loop()
        self.environment = environment
        self.name = name

    async def answer(self) -> str:
        await asyncio.sleep(0)
        return self.name

    async def close(self) -> None:
        Client.closed.append(self.name)


def test_calls_run_the_loop_and_clients_are_closed_in_reverse() -> None:
    Client.closed = []
    with Blocking() as blocking:
        first = blocking.make(lambda environment: Client(environment, "first"))
        second = blocking.make(lambda environment: Client(environment, "second"))
        assert first.environment is blocking.environment
        assert (blocking.run(first.answer()), blocking.run(second.answer())) == ("first", "second")
        assert not blocking.is_closed
    assert Client.closed == ["second", "first"]
    assert blocking.is_closed
    blocking.close()


def test_errors_reach_the_caller() -> None:
    async def fail() -> None:
        raise ValueError("no")

    with Blocking() as blocking, pytest.raises(ValueError, match="no"):
        blocking.run(fail())
