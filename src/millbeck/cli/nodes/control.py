"""Commands from another terminal to the nodes of ``millbeck up --nodes``: one line of JSON each way over a Unix socket.

The socket is in the user's runtime directory, which other users cannot enter.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

import click

LINE_BYTES_MAX: Final = 64 * 1024
REQUEST_SECONDS_MAX: Final = 5.0
ANSWER_SECONDS_MAX: Final = 90.0
"""The timeout of a command; starting a node takes as long as its log recovery."""

Handler = Callable[[str, int | None], Awaitable[Any]]
"""Handles a command: gets the verb and the node id; returns a JSON-serializable value, or raises
`click.ClickException`."""


class ControlServer:
    """Serves commands until it is closed."""

    def __init__(self, path: str, handler: Handler) -> None:
        self.path = path
        self._handler = handler
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Start listening; raises OSError."""
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=LINE_BYTES_MAX)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        try:
            os.unlink(self.path)
        except OSError:
            pass

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                line = await reader.readline()
            writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
            await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(line)
            verb, node_id = str(asked["verb"]), asked.get("node")
        except (ValueError, KeyError, TypeError, AttributeError):
            return {"error": "the command is not understood"}
        try:
            return {"result": await self._handler(verb, node_id)}
        except click.ClickException as error:
            return {"error": error.message}


def ask(path: str, verb: str, node_id: int | None = None) -> Any:
    """Send a command and return its result; raises `click.ClickException`."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(ANSWER_SECONDS_MAX)
            connection.connect(path)
            connection.sendall(json.dumps({"verb": verb, "node": node_id}).encode() + b"\n")
            with connection.makefile("rb") as lines:
                answer = json.loads(lines.readline(LINE_BYTES_MAX))
    except (OSError, ValueError) as error:
        raise click.ClickException(f"millbeck up does not answer: {error}") from error
    if "error" in answer:
        raise click.ClickException(answer["error"])
    return answer["result"]
