"""A whole node in the simulator, and a client that speaks plain wire messages to it."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from millbeck.kernel.environment import Environment
from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.server.config import NodeConfig
from millbeck.server.formatting import format_directories
from millbeck.server.node import Node, NodeSettings
from millbeck.testing.sim import World
from millbeck.wire import codec
from millbeck.wire.api_keys import APIS
from millbeck.wire.framing import read_response_header, request_prefix
from millbeck.wire.schema import schema_of

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


class Client(asyncio.Protocol):
    """One connection. Replies come in order; `ask` waits for its own."""

    def __init__(self) -> None:
        self.is_lost = False
        self._received = b""
        self._transport: asyncio.Transport | None = None
        self._waiting: list[tuple[int, int, asyncio.Future[Any]]] = []
        self._correlation_id = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(ConnectionError("connection lost"))

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= 4:
            (size,) = struct.unpack_from(">i", self._received)
            if len(self._received) < 4 + size:
                return
            frame, self._received = self._received[4 : 4 + size], self._received[4 + size :]
            api_key, version, future = self._waiting.pop(0)
            correlation_id, position = read_response_header(api_key, version, frame)
            response, end = codec.decoder(APIS[api_key].response, version)(frame, position)
            assert end == len(frame), "bytes behind the response"
            if not future.done():
                future.set_result(response)

    def send(self, request: Any, version: int, *, expects_reply: bool = True, client_id: str = "test") -> Any:
        """Send without waiting; the future of the reply."""
        api_key = schema_of(type(request)).api_key
        assert api_key is not None
        body = codec.encoder(type(request), version)(request)
        self._correlation_id += 1
        future = asyncio.get_running_loop().create_future()
        if expects_reply:
            self._waiting.append((api_key, version, future))
        self.write(request_prefix(api_key, version, self._correlation_id, client_id, len(body)) + body)
        return future

    def write(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def close(self) -> None:
        assert self._transport is not None
        self._transport.close()

    async def ask(self, request: Any, version: int, *, client_id: str = "test") -> Any:
        return await asyncio.wait_for(self.send(request, version, client_id=client_id), 60)


class House:
    """``node`` is the running one; `restart` makes another on the same disk."""

    def __init__(self, seed: int = 1, **settings: str) -> None:
        self.world = World(seed)
        self.machine = self.world.node("n1")
        self.settings = SETTINGS | {key.replace("_", "."): value for key, value in settings.items()}
        self.node: Node | None = None

    async def main(self, environment: Environment) -> None:
        config = NodeConfig(self.settings)
        format_directories(environment, config, ignore_formatted=True)
        node = Node(environment, config, NodeSettings(checks_views=True))
        await node.start()
        self.node = node
        await node.failed

    async def start(self) -> None:
        self.node = None
        self.machine.start(self.main)
        while self.node is None:
            await asyncio.sleep(0.01)

    async def connect(self, environment: Environment) -> Client:
        _, client = await environment.network.connect(Client, host="n1", port=9092)
        return cast(Client, client)

    def run(self, scenario: Callable[[House, Client, Environment], Coroutine[Any, Any, T]], limit_s: float = 600) -> T:
        """Start the node, connect, run the scenario; whatever the node reported as unexpected fails the test."""

        async def whole(environment: Environment) -> T:
            await self.start()
            client = await self.connect(environment)
            result = await scenario(self, client, environment)
            assert self.node is not None
            assert self.node.broker.unexpected_errors == 0
            return result

        return self.world.run(whole, limit_s=limit_s)


def one_batch(*values: bytes | None, key: bytes | None = None, **fields: Any) -> bytes:
    """A produced batch of records without keys, stamped with the simulated world's beginning."""
    timestamp = fields.pop("timestamp", 1_700_000_000_000)
    return batch.build([Record(-1, timestamp, key, value) for value in values], **fields)
