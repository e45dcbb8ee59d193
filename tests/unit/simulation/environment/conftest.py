"""Protocols that record, for tests of the simulated wires."""

from __future__ import annotations

import asyncio

import pytest


class Recorder(asyncio.Protocol):
    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.events: list[str] = []
        self.error: Exception | None = None

    @property
    def received(self) -> bytes:
        return b"".join(self.chunks)

    def connection_made(self, transport) -> None:
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

    def __init__(self, make=Recorder, port: int = 9092) -> None:
        self.make = make
        self.port = port
        self.accepted: list = []

    def _make(self):
        self.accepted.append(self.make())
        return self.accepted[-1]

    async def __call__(self, environment) -> None:
        await environment.network.listen(self._make, host="", port=self.port)
        await asyncio.get_running_loop().create_future()


@pytest.fixture
def recorder():
    return Recorder


@pytest.fixture
def listening():
    return Listening
