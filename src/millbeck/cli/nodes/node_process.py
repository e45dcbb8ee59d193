"""The child process of one node of several: reports when it is ready, and exits when its parent exits.

Its configuration is the first line of standard input, as JSON; its answer is one line of JSON on standard output. Its
argument is the name shown in process lists.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from typing import Final

import click

from millbeck.cli.nodes.node_processes import ERROR_PREFIX
from millbeck.cli.nodes.node_runner import ErrorHints, run_node
from millbeck.host.linux import name_process
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import check_formatted
from millbeck.server.node import Node

ADVICE: Final = ErrorHints(
    port_in_use="choose other ports with --port (controllers keep the ports of the first start)",
    address="choose another with --host",
    directory_in_use="stop the node that runs on it, or choose another directory with --data",
)


def main() -> None:
    order = json.loads(sys.stdin.buffer.readline())
    name_process(sys.argv[1])
    try:
        config = NodeConfig(order["settings"])

        def prepare(environment: Environment) -> None:
            check_formatted(environment, config)

        run_node(config, prepare, _announce, advice=ADVICE, verbose=order["verbose"], begun=_watch_parent)
    except (click.ClickException, InvalidConfig) as error:
        message = error.message if isinstance(error, click.ClickException) else str(error)
        sys.exit(f"{ERROR_PREFIX}{message}")


async def _announce(node: Node) -> bool:
    answer = {"port": node.listeners[0].port, "metrics_port": node.metrics_port}
    os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
    return True


async def _watch_parent() -> None:
    await asyncio.get_running_loop().connect_read_pipe(_ParentWatch, sys.stdin)


class _ParentWatch(asyncio.Protocol):
    def connection_lost(self, error: Exception | None) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
