"""A node as a process: it runs until it is told to stop or cannot go on."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Awaitable, Callable

import click

from millbeck.host import real_environment
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import NodeConfig
from millbeck.server.drivers.quorum import MetadataLogFailed
from millbeck.server.formatting import AlreadyFormatted, NotFormatted
from millbeck.server.node import Node, NodeSettings
from millbeck.storage.directory import DirectoryLocked
from millbeck.storage.properties import MetaPropertiesError

LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s (%(name)s)"

Started = Callable[[Node], Awaitable[bool]]
"""Called when the node serves; False ends it."""


def run_node(config: NodeConfig, prepare: Callable[[Environment], None], started: Started, *, verbose: bool) -> None:
    """Run a node in this process; exits with a message that says what is wrong when it cannot run."""
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, format=LOG_FORMAT, stream=sys.stderr)
    try:
        asyncio.run(_run(config, prepare, started))
    except (
        AlreadyFormatted,
        DirectoryLocked,
        InvalidConfig,
        MetaPropertiesError,
        MetadataLogFailed,
        NotFormatted,
        OSError,
    ) as error:
        raise click.ClickException(str(error)) from error


async def _run(config: NodeConfig, prepare: Callable[[Environment], None], started: Started) -> None:
    environment = real_environment()
    prepare(environment)
    node = Node(environment, config, NodeSettings(manages_memory=True))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await node.start()
    failure: BaseException | None = None
    try:
        if await started(node):
            node.failed.add_done_callback(lambda _: stop.set())
            await stop.wait()
            failure = node.failed.result() if node.failed.done() else None
    finally:
        await node.stop()
    if failure is not None:
        raise click.ClickException(f"the node could not go on: {failure}")
