"""The child process of `testing.broker_process` that runs a test's node; it must not outlive its parent.

It prints its address as one line on standard output, and exits on SIGTERM or when its parent is gone: standard input
then reaches end of file. Another process forked by the parent may hold that pipe open, so the parent's process id is
polled too.
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
from millbeck.host.local_names import LOOPBACK
from millbeck.host.log_lines import log_to
from millbeck.server.config import NodeConfig
from millbeck.server.local.client_configs import PROTOCOL
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import format_directories
from millbeck.server.local.initial_quorum import InitialQuorum
from millbeck.server.local.secured import SecuredCluster, secure
from millbeck.server.node import Node, NodeSettings

PARENT_CHECK_SECONDS: Final = 2.0
HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerProcessConfig:
    """The configuration from the parent, passed as JSON on the command line."""

    directory: str
    is_temporary: bool
    """Remove the directory if the parent is gone; otherwise the parent removes it."""
    parent: int
    port: int
    metrics_port: int
    settings: dict[str, str]
    cluster_id: str | None = None
    """The cluster id for formatting a new directory; None generates one."""
    is_secure: bool = False
    """Whether the node uses TLS, SASL and ACLs; the parent reads the users' passwords from the directory."""

    @property
    def log_directory(self) -> str:
        return f"{self.directory}/node-1" if self.is_secure else self.directory

    def config(self, secured: SecuredCluster | None = None) -> NodeConfig:
        protocol = "PLAINTEXT" if secured is None else PROTOCOL
        embedded = embedded_settings(
            self.log_directory, host=HOST, port=self.port, metrics_port=self.metrics_port, protocol=protocol
        )
        own = {} if secured is None else secured.node_settings(1)
        return NodeConfig(embedded | own | self.settings)


def main() -> None:
    log_to(sys.stderr, logging.WARNING)
    order = BrokerProcessConfig(**json.loads(sys.argv[1]))
    try:
        is_orphan = asyncio.run(serve(order))
    except Exception as error:
        sys.exit(f"{type(error).__name__}: {error}")
    if is_orphan and order.is_temporary:
        shutil.rmtree(order.directory, ignore_errors=True)


async def serve(order: BrokerProcessConfig) -> bool:
    """Run the node until it is stopped; returns whether that was because the parent is gone."""
    loop = asyncio.get_running_loop()
    end: asyncio.Future[bool] = loop.create_future()

    def finish(is_orphan: bool) -> None:
        if not end.done():
            end.set_result(is_orphan)

    loop.add_signal_handler(signal.SIGTERM, finish, False)
    await loop.connect_read_pipe(lambda: _ParentWatch(lambda: finish(True)), sys.stdin)
    watch = loop.create_task(_watch_parent(order.parent, lambda: finish(True)))
    environment = real_environment()
    secured = None
    if order.is_secure:
        is_formatted = environment.files.exists(f"{order.log_directory}/meta.properties")
        secured = secure(environment, order.directory, node_ids=[1], hosts=LOOPBACK, is_formatted=is_formatted)
    config = order.config(secured)
    # A node configured with a quorum that has lost its data must join that quorum, not create a new one.
    joins = InitialQuorum(controllers=()) if config.is_controller and config.quorum.bootstrap_servers else None
    format_directories(
        environment,
        config,
        cluster_id=order.cluster_id,
        quorum=joins,
        ignore_formatted=True,
        users=() if secured is None else secured.users,
        acls=() if secured is None else secured.acls,
    )
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
