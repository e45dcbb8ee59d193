"""The process in which a test's node runs: started by `testing.broker_process`, which it must not outlive.

It says where it listens in one line on standard output, and ends on SIGTERM or when its parent is gone: standard input
ends then. Somebody the parent forked may hold the other end of that pipe open, so its own parent's number is looked at
too, now and then.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.embedded import embedded_settings
from millbeck.server.formatting import format_directories
from millbeck.server.initial_quorum import InitialQuorum
from millbeck.server.node import Node, NodeSettings

PARENT_CHECK_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the parent wants, as it comes on the command line in JSON."""

    directory: str
    is_temporary: bool
    """Remove the directory when the parent is gone; a parent that lives does so itself."""
    parent: int
    port: int
    metrics_port: int
    settings: dict[str, str]
    cluster_id: str | None = None
    """The cluster that a new directory belongs to; None makes one of its own."""

    def config(self) -> NodeConfig:
        embedded = embedded_settings(self.directory, host="127.0.0.1", port=self.port, metrics_port=self.metrics_port)
        return NodeConfig(embedded | self.settings)


def main() -> None:
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    order = Order(**json.loads(sys.argv[1]))
    try:
        is_orphan = asyncio.run(serve(order))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    if is_orphan and order.is_temporary:
        shutil.rmtree(order.directory, ignore_errors=True)


async def serve(order: Order) -> bool:
    """Run the node until it is told to end; whether that was because the parent is gone."""
    loop = asyncio.get_running_loop()
    end: asyncio.Future[bool] = loop.create_future()

    def finish(is_orphan: bool) -> None:
        if not end.done():
            end.set_result(is_orphan)

    loop.add_signal_handler(signal.SIGTERM, finish, False)
    await loop.connect_read_pipe(lambda: _ParentWatch(lambda: finish(True)), sys.stdin)
    watch = loop.create_task(_watch_parent(order.parent, lambda: finish(True)))
    environment = real_environment()
    config = order.config()
    # Whoever is told where the quorum is, and lost what it had, joins it and does not found another.
    joins = InitialQuorum(controllers=()) if config.is_controller and config.quorum.bootstrap_servers else None
    format_directories(environment, config, cluster_id=order.cluster_id, quorum=joins, ignore_formatted=True)
    node = Node(environment, config, NodeSettings(manages_memory=True))
    await node.start()
    try:
        node.failed.add_done_callback(lambda _: finish(False))
        _announce({"port": node.listeners[0].port, "metrics_port": node.metrics_port})
        is_orphan = await end
    finally:
        watch.cancel()
        await node.stop()
    if node.failed.done():
        raise node.failed.result()
    return is_orphan


def _announce(answer: dict[str, Any]) -> None:
    os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")


class _ParentWatch(asyncio.Protocol):
    def __init__(self, gone: Callable[[], None]) -> None:
        self._gone = gone

    def connection_lost(self, error: Exception | None) -> None:
        self._gone()


async def _watch_parent(parent: int, gone: Callable[[], None]) -> None:
    while os.getppid() == parent:
        await asyncio.sleep(PARENT_CHECK_SECONDS)
    gone()
