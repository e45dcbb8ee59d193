"""A node on this machine's own sockets and files, in a loop of a thread, for clients that are not ours."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings


@contextmanager
def running(directory: Path, *, portable: bool = False, **settings: str) -> Iterator[Node]:
    """A running node; its ports are those of its listeners. Stopped, cleanly, at the end."""
    texts = {
        "log.dirs": str(directory),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "1",
        "group.initial.rebalance.delay.ms": "0",
        "metrics.http.host": "127.0.0.1",
        "metrics.http.port": "0",
    } | {key.replace("_", "."): value for key, value in settings.items()}
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> Node:
        environment = real_environment(portable=portable, thread_count=2)
        config = NodeConfig(texts)
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        return node

    try:
        node = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
        try:
            yield node
        finally:
            asyncio.run_coroutine_threadsafe(node.stop(), loop).result(30)
        assert node.broker.unexpected_errors == 0
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
