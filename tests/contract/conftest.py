"""One suite for every implementation of the kernel's environment: the real machine, the real machine without what Linux
alone has, and the simulator."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import trustme

from millbeck.host import real_environment
from millbeck.host.files import HostFiles
from millbeck.kernel.environment import Environment, Files
from millbeck.kernel.tls import TlsContext, TlsSource
from millbeck.simulation import World

Scenario = Callable[[Environment], Coroutine[Any, Any, Any]]


@dataclass
class Machine:
    """``other_files`` is what a second process on the same machine sees."""

    kind: str
    directory: str
    run: Callable[[Scenario], Any]
    files: Files
    other_files: Files
    host: str = "127.0.0.1"
    server_tls: TlsSource | None = None
    client_tls: TlsSource | None = None


def _real(tmp_path: Path, *, portable: bool) -> Machine:
    environment = real_environment(portable=portable)

    def run(scenario: Scenario) -> Any:
        async def bounded() -> Any:
            async with asyncio.timeout(30):
                return await scenario(environment)

        return asyncio.run(bounded())

    return Machine(
        kind="portable" if portable else "real",
        directory=str(tmp_path),
        run=run,
        files=environment.files,
        other_files=HostFiles(is_linux=not portable),
    )


def _simulated() -> Iterator[Machine]:
    with World(seed=20) as world:
        files = world.harness_run.environment.files
        files.make_directory("/data")
        yield Machine(
            kind="simulated",
            directory="/data",
            run=lambda scenario: world.run(scenario, limit_s=600),
            files=files,
            other_files=world.harness.disk.mount(),
        )


@pytest.fixture(params=["real", "portable", "simulated"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Machine]:
    if request.param == "simulated":
        yield from _simulated()
    else:
        yield _real(tmp_path, portable=request.param == "portable")


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(params=["real", "portable", "tls", "simulated"])
def connecting_machine(request: pytest.FixtureRequest, tmp_path: Path, authority: trustme.CA) -> Iterator[Machine]:
    """Every kind of machine, and TLS on the real one."""
    if request.param == "simulated":
        yield from _simulated()
    else:
        machine = _real(tmp_path, portable=request.param == "portable")
        if request.param == "tls":
            _add_tls(machine, authority)
        yield machine


def _add_tls(machine: Machine, authority: trustme.CA) -> None:
    machine.kind = "tls"
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("localhost", "127.0.0.1").configure_cert(server)
    authority.configure_trust(client)
    machine.server_tls = lambda: TlsContext(context=server)
    machine.client_tls = lambda: TlsContext(context=client)
