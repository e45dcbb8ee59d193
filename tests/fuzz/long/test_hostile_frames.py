"""100,000 hostile frames at a real node: it lives, stays small, and a steady client hardly notices.

Run by ``make fuzz``; too long for every change.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import struct
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from millbeck.testing import broker
from tests.fuzz.long.frames import hostile_frame, valid_frames

FRAME_COUNT = int(os.environ.get("FRAMES", "100000"))
CONNECTIONS = 50
PATIENCE_SECONDS = 0.2
STEADY_RATE = 200
QUIET_SECONDS = 10


def resident_kib(pid: int) -> int:
    match = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert match
    return int(match[1])


def steady(host: str, port: int, seconds: float) -> subprocess.Popen[str]:
    script = Path(__file__).with_name("steady_client.py")
    arguments = [sys.executable, str(script), host, str(port), str(seconds), str(STEADY_RATE)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)


def loop_lag_ms(metrics_url: str) -> float:
    text = urllib.request.urlopen(metrics_url, timeout=10).read().decode()
    match = re.search(r'millbeck_loop_lag_ms\{quantile="0.999"\} (\S+)', text)
    assert match
    return float(match[1])


class Attack:
    """Workers that each send a frame, wait a moment for what comes of it, and send the next."""

    def __init__(self, host: str, port: int, count: int, seed: int) -> None:
        self.host = host
        self.port = port
        self.left = count
        self.dice = random.Random(seed)
        self.valid = valid_frames()
        self.answered = self.closed = self.silent = 0

    async def run(self) -> Attack:
        await asyncio.gather(*(self._work() for _ in range(CONNECTIONS)))
        return self

    async def _work(self) -> None:
        while self.left > 0:
            reader, writer = await asyncio.open_connection(self.host, self.port)
            try:
                while self.left > 0:
                    self.left -= 1
                    writer.write(hostile_frame(self.dice, self.valid))
                    (size,) = struct.unpack(">i", await asyncio.wait_for(reader.readexactly(4), PATIENCE_SECONDS))
                    await asyncio.wait_for(reader.readexactly(size), PATIENCE_SECONDS)
                    self.answered += 1
            except (ConnectionError, asyncio.IncompleteReadError):
                self.closed += 1
            except TimeoutError:
                self.silent += 1  # parked, or the frame promised more than it held
            finally:
                writer.transport.abort()


def bombard(host: str, port: int, count: int, seed: int) -> Attack:
    return asyncio.run(Attack(host, port, count, seed).run())


@pytest.mark.timeout(1500)
def test_a_node_outlives_hostile_frames_and_others_hardly_notice() -> None:
    with broker() as node:
        host, port = node.bootstrap.rsplit(":", 1)
        quiet_client = steady(host, int(port), QUIET_SECONDS)
        quiet = json.loads(quiet_client.communicate(timeout=QUIET_SECONDS + 30)[0])
        bombard(host, int(port), 2000, seed=1)  # let caches and codecs grow before the memory is measured
        assert node.process_id is not None
        before_kib = resident_kib(node.process_id)
        seconds = max(10.0, FRAME_COUNT / 2500)
        under_fire = steady(host, int(port), seconds)
        started = time.monotonic()
        attack = bombard(host, int(port), FRAME_COUNT, seed=2)
        took = time.monotonic() - started
        lag_ms = loop_lag_ms(node.metrics_url)
        loud = json.loads(under_fire.communicate(timeout=seconds + 60)[0])
        grown_kib = resident_kib(node.process_id) - before_kib
        print(
            f"\n{FRAME_COUNT} frames in {took:.0f} s: {attack.answered} answered, {attack.closed} connections closed, "
            f"{attack.silent} without an answer; RSS grew {grown_kib} KiB; "
            f"loop lag p99.9 {lag_ms:.1f} ms; steady client p99 {quiet['p99_ms']:.2f} ms quiet, {loud['p99_ms']:.2f} ms"
        )
        assert attack.closed > FRAME_COUNT // 10, "the frames were too tame"
        assert attack.answered > FRAME_COUNT // 10, "the frames were too wild"
        assert grown_kib <= 64 * 1024
        assert lag_ms <= 100
        assert loud["p99_ms"] <= 2 * quiet["p99_ms"] + 5
