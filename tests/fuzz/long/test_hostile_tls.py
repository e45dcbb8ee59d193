"""Ten million bytes of hostile TLS at a real node: it lives, stays small, and a steady client hardly notices.

Run by ``make fuzz``; too long for every change.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import socket
import time
from pathlib import Path

import pytest

from millbeck.testing import broker
from tests.fixtures.authority import Authority
from tests.fuzz.long.test_hostile_frames import loop_lag_ms, resident_kib, steady
from tests.fuzz.tls_input import HostileClient

BYTES = int(os.environ.get("BYTES", "10000000"))
ABREAST = 30
QUIET_SECONDS = 8
ATTACK_SECONDS = 120


class Attack:
    def __init__(self, port: int, size_bytes: int, seed: int) -> None:
        self.port = port
        self.left_bytes = size_bytes
        self.seed = seed
        self.connections = 0

    async def run(self) -> None:
        await asyncio.gather(*(self._work() for _ in range(ABREAST)))

    async def _work(self) -> None:
        while self.left_bytes > 0:
            self.seed += 1
            self.connections += 1
            client = HostileClient(random.Random(self.seed))
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            with contextlib.suppress(ConnectionError, TimeoutError):
                for _ in range(client.honest_flights):
                    self._send(writer, client.flight())
                    client.incoming.write(await asyncio.wait_for(reader.read(1 << 14), 0.2))
                self._send(writer, client.hostile(client.flight()))
                await writer.drain()
                await asyncio.wait_for(reader.read(1 << 14), 0.05)
            writer.transport.abort()

    def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        self.left_bytes -= len(data)
        writer.write(data)


def bombard(port: int, size_bytes: int, seed: int) -> Attack:
    attack = Attack(port, size_bytes, seed)
    asyncio.run(attack.run())
    return attack


@pytest.mark.timeout(900)
def test_a_node_outlives_hostile_tls_and_others_hardly_notice(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "node.pem").write_bytes(authority.issue())
    (tmp_path / "trust.pem").write_bytes(authority.pem)
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,TLS://127.0.0.1:{port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL",
        "ssl.keystore.location": str(tmp_path / "node.pem"),
        "ssl.truststore.location": str(tmp_path / "trust.pem"),
        "ssl.client.auth": "requested",
    }
    with broker(settings) as node:
        host, plain = node.bootstrap.rsplit(":", 1)
        quiet = json.loads(steady(host, int(plain), QUIET_SECONDS).communicate(timeout=QUIET_SECONDS + 30)[0])
        bombard(port, BYTES // 20, seed=1)
        assert node.process_id is not None
        before_kib = resident_kib(node.process_id)
        under_fire = steady(host, int(plain), ATTACK_SECONDS)
        started = time.monotonic()
        attack = bombard(port, BYTES, seed=1_000_000)
        took = time.monotonic() - started
        lag_ms = loop_lag_ms(node.metrics_url)
        loud = json.loads(under_fire.communicate(timeout=ATTACK_SECONDS + 60)[0])
        grown_kib = resident_kib(node.process_id) - before_kib
        print(
            f"\n{BYTES} bytes on {attack.connections} connections in {took:.0f} s; RSS grew {grown_kib} KiB; loop lag "
            f"p99.9 {lag_ms:.1f} ms; steady client p99 {quiet['p99_ms']:.2f} ms quiet, {loud['p99_ms']:.2f} ms"
        )
        assert attack.connections > BYTES // 20_000
        assert grown_kib <= 64 * 1024
        assert loud["p99_ms"] <= 1.5 * quiet["p99_ms"] + 5
