"""The process of one node of several (`cli.fleet`): it says when it is ready, and ends when its parent has.

Its order comes on the command line in JSON; what it says is one line of JSON on standard output.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Final

import click

from millbeck.cli.running import Advice, run_node
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import NodeConfig
from millbeck.server.formatting import check_formatted
from millbeck.server.node import Node

ADVICE: Final = Advice(
    port_in_use="choose other ports with --port (controllers stay where they were at first)",
    address="choose another with --host",
    directory_in_use="stop the node that runs on it, or choose another directory with --data",
)


def main() -> None:
    order = json.loads(sys.argv[1])
    try:
        config = NodeConfig(order["settings"])

        def prepare(environment: Environment) -> None:
            check_formatted(environment, config)

        run_node(config, prepare, _announce, advice=ADVICE, verbose=order["verbose"], begun=_watch_parent)
    except (click.ClickException, InvalidConfig) as error:
        message = error.message if isinstance(error, click.ClickException) else str(error)
        sys.exit(f"millbeck: {message}")


async def _announce(node: Node) -> bool:
    answer = {"port": node.listeners[0].port, "metrics_port": node.metrics_port}
    os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
    return True


async def _watch_parent() -> None:
    await asyncio.get_running_loop().connect_read_pipe(_ParentWatch, sys.stdin)


class _ParentWatch(asyncio.Protocol):
    def connection_lost(self, error: Exception | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
