"""Protocols that record, for tests of the simulated wires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import Environment


class Recorder(asyncio.Protocol):
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.events: list[str] = []
        self.error: Exception | None = None

    @property
    def received(self) -> bytes:
        return b"".join(self.chunks)

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.chunks.append(data)

    def eof_received(self) -> bool | None:
        self.events.append("eof")
        return None

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.error = error
        self.events.append("lost")


class Listening:
    """A node's main: listens, keeps every connection it gets, and goes on for ever."""

    def __init__(self, make: Callable[[], Any] = Recorder, port: int = 9092) -> None:
        self.make = make
        self.port = port
        self.accepted: list[Any] = []

    def _make(self) -> Any:
        self.accepted.append(self.make())
        return self.accepted[-1]

    async def __call__(self, environment: Environment) -> None:
        await environment.network.listen(self._make, host="", port=self.port)
        await asyncio.get_running_loop().create_future()


@pytest.fixture
def recorder() -> Any:
    return Recorder


@pytest.fixture
def listening() -> Any:
    return Listening
