"""Commands over a Unix socket: answers, failures, and peers that do not keep to the rules."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import pytest

from millbeck.cli.nodes.control import LINE_BYTES_MAX, ControlServer, ask

T = TypeVar("T")


async def handle(verb: str, node_id: int | None) -> Any:
    if verb == "refuse":
        raise click.ClickException("not now")
    return {"verb": verb, "node": node_id}


def served(path: Path, work: Callable[[str], T]) -> T:
    """What ``work`` returns, which blocks, with a server on that path."""

    async def main() -> T:
        server = ControlServer(str(path), handle)
        await server.start()
        try:
            return await asyncio.to_thread(work, str(path))
        finally:
            await server.close()

    return asyncio.run(main())


def test_a_command_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "s"
    assert served(path, lambda name: ask(name, "stop", 2)) == {"verb": "stop", "node": 2}
    assert not path.exists()


def test_a_refusal_is_the_commands_error(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="not now"):
        served(tmp_path / "s", lambda name: ask(name, "refuse"))


@pytest.mark.parametrize("line", [b"{\n", b"[]\n", b"3\n", b"x" * (LINE_BYTES_MAX + 10), b""])
def test_nonsense_ends_only_its_own_connection(tmp_path: Path, line: bytes) -> None:
    def work(name: str) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(name)
            try:
                connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(1000)
            except OSError:
                answer = b""
        assert answer in (b"", b'{"error": "the command is not understood"}\n')
        return ask(name, "status")

    assert served(tmp_path / "s", work) == {"verb": "status", "node": None}


def test_nobody_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="millbeck up does not answer"):
        ask(str(tmp_path / "none"), "status")
