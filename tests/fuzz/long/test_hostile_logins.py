"""Ten million bytes of hostile logins at a real node, by every mechanism: it lives, stays small, and logs no defect.

Run by ``make fuzz``; too long for every change. BYTES=1000000 makes it shorter.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import re
import struct
import time
from pathlib import Path

import pytest

from millbeck.host import real_environment
from millbeck.wire import codec
from millbeck.wire.errors import DecodeError
from millbeck.wire.messages.authentication import SaslAuthenticateResponse
from tests.e2e.server_process import ServerProcess, free_ports
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, key_set, token
from tests.fuzz.logins import PASSWORD, USER, HostileLogin
from tests.fuzz.long.test_hostile_frames import QUIET_SECONDS, loop_lag_ms, resident_kib, steady

BYTE_COUNT = int(os.environ.get("BYTES", "10000000"))
CONNECTIONS = 50
PATIENCE_SECONDS = 0.3
_HEADER_SIZE = 5
DEFECTS = re.compile(r"Traceback|unexpected|Exception")


class HostileLogins:
    def __init__(self, port: int, byte_count: int, seed: int) -> None:
        self._port = port
        self._left = byte_count
        self._dice = random.Random(seed)
        self._now_ms = real_environment().clock.wall_ms()
        self.connections = self.answered = 0

    async def run(self) -> HostileLogins:
        await asyncio.gather(*(self._work() for _ in range(CONNECTIONS)))
        return self

    async def _work(self) -> None:
        while self._left > 0:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            self.connections += 1
            try:
                with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
                    await self._dialogue(reader, writer)
            finally:
                writer.transport.abort()

    async def _dialogue(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        login = HostileLogin(self._dice, lambda: token(USER, self._now_ms, lifetime_s=7200))
        reply: bytes | None = None
        while True:
            frame = login.next_frame(reply)
            if frame is None:
                return
            size = len(frame) if self._dice.random() < 0.97 else self._dice.choice((-1, 0, 600_000, len(frame) + 9))
            self._left -= 4 + len(frame)
            writer.write(struct.pack(">i", size) + frame)
            async with asyncio.timeout(PATIENCE_SECONDS):
                (length,) = struct.unpack(">i", await reader.readexactly(4))
                reply = await reader.readexactly(length)
            self.answered += 1
            reply = reply if login.is_bare else _token_of(reply)


def _token_of(reply: bytes) -> bytes:
    """The token of a SaslAuthenticate response; empty for other responses."""
    try:
        response, _ = codec.decoder(SaslAuthenticateResponse, 2)(reply, _HEADER_SIZE)
    except DecodeError:
        return b""
    return response.auth_bytes


@pytest.mark.timeout(1500)
def test_a_node_outlives_hostile_logins_and_others_hardly_notice(tmp_path: Path) -> None:
    plain, sasl = free_ports(2)
    keys = tmp_path / "jwks.json"
    keys.write_bytes(key_set("ec"))
    node = ServerProcess(
        tmp_path / "node",
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{sasl}",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
            ),
            "sasl.oauthbearer.jwks.endpoint.url": f"file://{keys}",
            "org.apache.kafka.sasl.oauthbearer.allowed.urls": f"file://{keys}",
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "connection.failed.authentication.delay.ms": "10",
            "connections.max.reauth.ms": "3600000",
        },
    )
    users = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
    node.format("AAAAAAAAAAAAAAAAAAAAKg", "-s", "-S", users[0], "-S", users[1])
    node.start()
    try:
        quiet = json.loads(steady("127.0.0.1", plain, QUIET_SECONDS).communicate(timeout=QUIET_SECONDS + 30)[0])
        asyncio.run(HostileLogins(sasl, BYTE_COUNT // 20, seed=1).run())  # let caches grow before memory is measured
        before_kib = resident_kib(node.process_id)
        seconds = max(10.0, BYTE_COUNT / 400_000)
        under_fire = steady("127.0.0.1", plain, seconds)
        started = time.monotonic()
        attack = asyncio.run(HostileLogins(sasl, BYTE_COUNT, seed=2).run())
        took = time.monotonic() - started
        lag_ms = loop_lag_ms(node.metrics_url)
        loud = json.loads(under_fire.communicate(timeout=seconds + 60)[0])
        grown_kib = resident_kib(node.process_id) - before_kib
        print(
            f"\n{BYTE_COUNT} bytes, {attack.connections} connections in {took:.0f} s, {attack.answered} answers; "
            f"RSS grew {grown_kib} KiB; loop lag p99.9 {lag_ms:.1f} ms; "
            f"steady client p99 {quiet['p99_ms']:.2f} ms quiet, {loud['p99_ms']:.2f} ms"
        )
        assert attack.answered > attack.connections // 2, "the logins were too wild"
        assert node.is_running
        assert not DEFECTS.search(node.said()), node.said()[-3000:]
        assert grown_kib <= 64 * 1024
        assert lag_ms <= 100
        assert loud["p99_ms"] <= 1.5 * quiet["p99_ms"] + 5
    finally:
        node.stop()
