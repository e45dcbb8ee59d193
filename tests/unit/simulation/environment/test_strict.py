"""A node that reaches around its environment fails its run."""

from __future__ import annotations

import contextlib
import logging
import os
import pathlib
import random
import secrets
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.simulation import SimulationFailed, World, WorldOptions
from millbeck.simulation.environment.strict import RealIoError, strict_mode

LEAKS = {
    "time": lambda: time.time(),
    "monotonic": lambda: time.monotonic(),
    "sleep": lambda: time.sleep(0),
    "random": lambda: random.random(),
    "choice": lambda: random.choice([1]),
    "urandom": lambda: os.urandom(4),
    "uuid4": lambda: uuid.uuid4(),
    "token": lambda: secrets.token_bytes(4),
    "open": lambda: open("/dev/null").close(),
    "pathlib": lambda: pathlib.Path("/dev/null").read_bytes(),
    "os.open": lambda: os.open("/dev/null", os.O_RDONLY),
    "listdir": lambda: os.listdir("/"),
    "tempfile": lambda: tempfile.mkdtemp(),
    "socket": lambda: socket.socket(),
    "connection": lambda: socket.create_connection(("127.0.0.1", 1)),
    "thread": lambda: threading.Thread(target=print).start(),
}


def _run(call: Callable[..., object], **options: Any) -> World:
    async def main(environment: Environment) -> None:
        call()

    async def scenario(environment: Environment) -> None:
        await world.node("n1").start(main).wait()

    with World(1, WorldOptions(**options)) as world:
        world.run(scenario, limit_s=10)
    return world


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_fails_the_run(name: str) -> None:
    with pytest.raises(SimulationFailed, match="n1/1") as caught:
        _run(LEAKS[name])
    assert isinstance(caught.value.__cause__, RealIoError)


def test_a_leak_that_is_swallowed_fails_the_run_all_the_same() -> None:
    def call() -> None:
        with contextlib.suppress(BaseException):
            time.time()

    with pytest.raises(SimulationFailed, match=r"time\.time"):
        _run(call)


def test_without_strict_mode_leaks_pass() -> None:
    _run(LEAKS["time"], is_strict=False)
    assert time.time() > 0


def test_logging_and_imports_get_through(caplog: pytest.LogCaptureFixture) -> None:
    def call() -> None:
        logging.getLogger("node").warning("a line with a real time stamp")
        import this  # noqa: F401

    _run(call)
    assert "real time stamp" in caplog.text


def test_the_harness_may_use_the_real_world() -> None:
    async def scenario(environment: Environment) -> object:
        return time.time() > 0 and len(os.urandom(3)) == 3

    with World(1) as world:
        assert world.run(scenario, limit_s=10)


def test_everything_is_put_back() -> None:
    before = (time.time, random.random, os.open, open, socket.socket, threading.Thread.start)
    with strict_mode():
        assert time.time is not before[0]
    assert (time.time, random.random, os.open, open, socket.socket, threading.Thread.start) == before


def test_sockets_made_while_strict_are_still_sockets() -> None:
    original = socket.socket
    with strict_mode(), socket.socket() as made:
        assert isinstance(made, original)
