"""The clients of the churn run, each a process of its own: a steady one, and those that open, create and send much.

`connections` opens and closes so many a second, from several addresses of 127/8 and half of them with a reset, so that
its own ports do not run out; some leave before they say anything, some in the middle of a request. Every wait is
bounded, and what ran into its bound is traced: which step it was, how long it took, and what the kernel said of both
ends of the connection at that moment.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import random
import socket
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from bench import raw, sockets

SOURCES = tuple(f"127.0.{third}.{fourth}" for third in (1, 2) for fourth in range(1, 11))
WAIT_SECONDS_MAX = 5.0
TRACES_MAX = 50
KEY_BYTES = 1_000_000
KEYS_TOPIC = "churn-keys"
TOPIC_SIZES = (100,) * 3 + (1000,)
"""Partitions of one topic after another."""
RESET = struct.pack("ii", 1, 0)

ANSWERED, LEFT_AT_ONCE, LEFT_INSIDE_A_REQUEST = "answered", "left at once", "left inside a request"
MANNERS = (ANSWERED,) * 8 + (LEFT_AT_ONCE, LEFT_INSIDE_A_REQUEST)


class Trouble:
    """What went wrong: counted by kind, and the first of them with a trace."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.traces: list[str] = []

    def note(self, kind: str, detail: str) -> None:
        self.counts[kind] += 1
        if len(self.traces) < TRACES_MAX:
            self.traces.append(f"{time.strftime('%H:%M:%S')} {kind}: {detail}")

    def result(self) -> dict[str, Any]:
        return {"errors": dict(self.counts), "traces": self.traces}


class Connections:
    """Opens `rate` connections a second, and holds others open meanwhile."""

    def __init__(self, host: str, port: int, topic: str) -> None:
        self._address = (host, port)
        self._sources = itertools.cycle(SOURCES)
        self._dice = random.Random(port)
        self._frames = [_frame(raw.API_VERSIONS, 0, b""), _frame(raw.METADATA, 4, raw.metadata_body([topic]))]
        self.opened = 0
        self.slowest_ms = {"connect": 0.0, "reply": 0.0}
        self.trouble = Trouble()

    async def run(self, rate: float, seconds: float, held: int) -> None:
        holding = [asyncio.create_task(self._hold(seconds)) for _ in range(held)]
        running: set[asyncio.Task[None]] = set()
        start = time.monotonic()
        for number in range(int(rate * seconds)):
            ahead = start + number / rate - time.monotonic()
            if ahead > 0:
                await asyncio.sleep(ahead)
            elif number % 50 == 0:
                await asyncio.sleep(0)
            task = asyncio.create_task(self._visit())
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running, *holding)

    async def _visit(self) -> None:
        client = await self._connected()
        if client is None:
            return
        manner = self._dice.choice(MANNERS)
        try:
            if manner == ANSWERED:
                for frame in self._frames:
                    await self._ask(client, frame)
            elif manner == LEFT_INSIDE_A_REQUEST:
                await asyncio.get_running_loop().sock_sendall(client, self._frames[1][:10])
        except OSError as error:
            self.trouble.note(f"{type(error).__name__} in a connection", str(error))
        finally:
            if manner != ANSWERED or self._dice.random() < 0.5:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.close()

    async def _hold(self, seconds: float) -> None:
        """Be there until the end, idle but for one request."""
        end = time.monotonic() + seconds
        await asyncio.sleep(self._dice.uniform(0, min(10.0, seconds / 4)))
        client = await self._connected()
        if client is None:
            return
        try:
            await self._ask(client, self._frames[0])
            await asyncio.sleep(max(0.0, end - time.monotonic()))
        except OSError as error:
            self.trouble.note(f"{type(error).__name__} in a held connection", str(error))
        finally:
            client.close()

    async def _connected(self) -> socket.socket | None:
        client = socket.socket()
        client.setblocking(False)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        source = next(self._sources)
        try:
            # The port is chosen by the kernel when it knows both ends: the same one may serve many sources.
            client.setsockopt(socket.IPPROTO_IP, sockets.IP_BIND_ADDRESS_NO_PORT, 1)
            client.bind((source, 0))
            await self._bounded("connect", client, asyncio.get_running_loop().sock_connect(client, self._address))
        except OSError as error:
            self.trouble.note(f"{type(error).__name__} in connect", f"from {source}: {error}")
            client.close()
            return None
        self.opened += 1
        return client

    async def _ask(self, client: socket.socket, frame: bytes) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, frame)
        await self._bounded("reply", client, _reply(client))

    async def _bounded(self, step: str, client: socket.socket, waited: Any) -> None:
        start = time.monotonic()
        try:
            async with asyncio.timeout(WAIT_SECONDS_MAX):
                await waited
        except TimeoutError:
            ends = sockets.both_ends(client.getsockname(), self._address)
            raise TimeoutError(f"{step} took more than {WAIT_SECONDS_MAX:g} s; {ends}") from None
        self.slowest_ms[step] = max(self.slowest_ms[step], (time.monotonic() - start) * 1000)


async def _reply(client: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    received = bytearray()
    wanted = 4
    while len(received) < wanted:
        part = await loop.sock_recv(client, 1 << 16)
        if not part:
            raise ConnectionError("the broker closed the connection")
        received += part
        if len(received) >= 4:
            wanted = 4 + int.from_bytes(received[:4], "big")


def _frame(api_key: int, version: int, body: bytes) -> bytes:
    head = struct.pack(">hhihs", api_key, version, 1, 1, b"c")
    return struct.pack(">i", len(head) + len(body)) + head + body


def connections(arguments: dict[str, Any]) -> dict[str, Any]:
    client = Connections(*_address(arguments), arguments["topic"])
    asyncio.run(client.run(arguments["rate"], arguments["seconds"], arguments["held"]))
    return client.trouble.result() | {"opened": client.opened, "slowest_ms": client.slowest_ms}


def topics(arguments: dict[str, Any]) -> dict[str, Any]:
    """Create topics, write a record into each, keep up to so many partitions, and delete the oldest; at the end all."""
    trouble = Trouble()
    alive: list[tuple[str, int]] = []
    batch = raw.build_batch([b"x" * 100])
    sizes = itertools.cycle(TOPIC_SIZES)
    names = (f"churn-{os.getpid()}-{number}" for number in itertools.count())

    def create(connection: raw.RawConnection) -> None:
        name, size = next(names), next(sizes)
        alive.append((name, size))
        connection.create_topic(name, size, config={"segment.bytes": "1048576"})
        connection.send_produce(name, 0, batch)
        if error := connection.receive_produce()[0]:
            raise raw.RawError(f"Produce to {name}: error {error}")

    def delete(connection: raw.RawConnection) -> None:
        connection.delete_topic(alive.pop(0)[0])

    client = Retrying(arguments["bootstrap"], trouble)
    created = 0
    for _ in paced(arguments["rate"], arguments["seconds"]):
        created += client.run("create or write to a topic", create)
        while sum(size for _, size in alive) > arguments["partitions"]:
            client.run("delete a topic", delete)
    while alive:
        client.run("delete a topic", delete)
    return trouble.result() | {"created": created}


def keys(arguments: dict[str, Any]) -> dict[str, Any]:
    """Records whose keys are a megabyte, to a compacted topic, in waves of slow clients.

    In the first half of a wave one connection after another sends half of its request, so that all of these halves are
    in the node's memory at one moment. In the second half every other connection goes away; the others send the rest,
    and the last record is read back.
    """
    trouble = Trouble()
    client = Retrying(arguments["bootstrap"], trouble)
    settings = {"cleanup.policy": "compact", "segment.bytes": str(64 << 20)}
    client.run("create a topic", lambda connection: connection.create_topic(KEYS_TOPIC, 1, config=settings))
    rate, count = arguments["rate"], arguments["writers"]
    written = 0

    def wave(connection: raw.RawConnection) -> None:
        nonlocal written
        key = written.to_bytes(8, "big") * (KEY_BYTES // 8)
        body = raw.produce_body(KEYS_TOPIC, 0, raw.build_batch([b"value"], key=key), acks=-1)
        offset = 0
        with contextlib.ExitStack() as stack:
            halves: list[tuple[raw.RawConnection, bytes]] = []
            for _ in paced(2 * count * rate, 0.5 / rate):
                writer = stack.enter_context(raw.RawConnection(arguments["bootstrap"]))
                writer.api_versions()
                frame = writer.frame(raw.PRODUCE, 7, body)
                writer.socket.sendall(frame[: len(frame) // 2])
                halves.append((writer, frame[len(frame) // 2 :]))
            for number, _ in enumerate(paced(2 * count * rate, 0.45 / rate)):
                writer, rest = halves[number]
                if number % 2:
                    writer.close()
                    continue
                writer.socket.sendall(rest)
                error, offset = writer.receive_produce()
                if error:
                    raise raw.RawError(f"Produce of a long key: error {error}")
                written += 1
        connection.send_fetch(KEYS_TOPIC, 0, offset, size_bytes_max=2 << 20)
        if len(connection.receive_fetch()[1]) < KEY_BYTES:
            raise raw.RawError("a long key did not come back")

    for _ in paced(rate, arguments["seconds"]):
        client.run("write long keys", wave)
    client.run("delete a topic", lambda connection: connection.delete_topic(KEYS_TOPIC))
    return trouble.result() | {"written": written}


def steady(arguments: dict[str, Any]) -> dict[str, Any]:
    """A record at a time at a fixed rate, acks=all; each latency counts from when the record was due."""
    trouble = Trouble()
    batch = raw.build_batch([b"x" * 100])
    latencies_ms: list[float] = []
    client = Retrying(arguments["bootstrap"], trouble)

    def write(connection: raw.RawConnection) -> None:
        connection.send_produce(arguments["topic"], 0, batch)
        if error := connection.receive_produce()[0]:
            raise raw.RawError(f"Produce: error {error}")

    for due in paced(arguments["rate"], arguments["seconds"]):
        client.run("write a record", write)
        latencies_ms.append((time.monotonic() - due) * 1000)
    return trouble.result() | {"latencies_ms": latencies_ms}


class Retrying:
    """A raw connection that is made anew after trouble, which is noted with the step that it was in."""

    def __init__(self, bootstrap: str, trouble: Trouble) -> None:
        self._bootstrap = bootstrap
        self._trouble = trouble
        self._connection: raw.RawConnection | None = None

    def run(self, step: str, work: Callable[[raw.RawConnection], None]) -> bool:
        start = time.monotonic()
        try:
            if self._connection is None:
                self._connection = raw.RawConnection(self._bootstrap)
            work(self._connection)
        except (OSError, raw.RawError) as error:
            self._trouble.note(f"{type(error).__name__}: {step}", f"{error} after {time.monotonic() - start:.1f} s")
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            return False
        return True


def paced(rate: float, seconds: float) -> Iterator[float]:
    """Yield at each moment that a step is due, and that moment; steps that are late follow at once."""
    start = time.monotonic()
    for number in range(int(rate * seconds)):
        due = start + number / rate
        time.sleep(max(0.0, due - time.monotonic()))
        yield due


def _address(arguments: dict[str, Any]) -> tuple[str, int]:
    host, _, port = arguments["bootstrap"].rpartition(":")
    return host, int(port)


MODES = {"connections": connections, "topics": topics, "keys": keys, "steady": steady}


def main() -> None:
    arguments = json.loads(sys.stdin.readline())
    os.nice(arguments.get("nice", 0))
    print(json.dumps(MODES[arguments["mode"]](arguments)), flush=True)


if __name__ == "__main__":
    main()
