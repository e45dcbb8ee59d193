"""A whole node in the simulator, and a client that speaks plain wire messages to it."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from millbeck.kernel.environment import Environment
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.simulation import World
from millbeck.simulation.environment.process import PROCESS
from millbeck.simulation.environment.threads import SimThreads
from millbeck.simulation.workloads.wire_client import WireClient

T = TypeVar("T")
SETTINGS = {
    "log.dirs": "/data",
    "listeners": "PLAINTEXT://:9092",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "metrics.http.port": "9404",
    "metrics.http.host": "",
}


Client = WireClient


class BrokerHarness:
    """``node`` is the running one; `restart` makes another on the same disk."""

    def __init__(self, seed: int = 1, **settings: str) -> None:
        self.world = World(seed)
        self.machine = self.world.node("n1")
        self.settings = SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
        self.node: Node | None = None
        self.syncs_on_loop: list[str] = []
        """Where the node, once it served, waited for its disk on the loop."""

    async def main(self, environment: Environment) -> None:
        assert isinstance(environment.threads, SimThreads)
        # A start may wait for the disk.
        environment.threads.meter.on_held = None
        config = NodeConfig(self.settings)
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        environment.threads.meter.on_held = self._held
        self.node = node
        await node.failed

    def _held(self) -> None:
        process = PROCESS.get()
        if process is not None and not process.is_harness:
            self.syncs_on_loop.append("".join(traceback.format_stack(limit=12)))

    async def start(self) -> None:
        self.node = None
        self.machine.start(self.main)
        while self.node is None:
            await asyncio.sleep(0.01)

    async def connect(self, environment: Environment) -> Client:
        _, client = await environment.network.connect(Client, host="n1", port=9092)
        return cast(Client, client)

    def run(
        self, scenario: Callable[[BrokerHarness, Client, Environment], Coroutine[Any, Any, T]], limit_s: float = 600
    ) -> T:
        """Start the node, connect, run the scenario; what the node reported as unexpected fails the test, as does a
        sync on its loop."""

        async def whole(environment: Environment) -> T:
            await self.start()
            client = await self.connect(environment)
            result = await scenario(self, client, environment)
            assert self.node is not None
            assert self.node.broker.unexpected_errors == 0
            assert not self.syncs_on_loop, self.syncs_on_loop[0]
            return result

        with self.world:
            return self.world.run(whole, limit_s=limit_s)


def one_batch(*values: bytes | None, key: bytes | None = None, **fields: Any) -> bytes:
    """A produced batch of records without keys, stamped with the simulated world's beginning."""
    timestamp = fields.pop("timestamp", 1_700_000_000_000)
    return batch.build([Record(-1, timestamp, key, value) for value in values], **fields)
