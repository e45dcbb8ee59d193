"""Random kills while two connectors carry lines from file to topic to file: worker, Java, Spark's Python tasks, broker.

``KILLS`` and ``SEED`` change how many there are, and which.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from millbeck.testing.broker_process import broker
from tests.e2e.server_process import free_ports

pytest.importorskip("pyspark", reason="the extra connect-worker is not installed")

KILLS = int(os.environ.get("KILLS", "20"))
SEED = int(os.environ.get("SEED", "1"))
LINES_PER_KILL = 2_000
SESSION_SECONDS = 6
_SECONDS_MAX = 120.0
_STRING = "org.apache.kafka.connect.storage.StringConverter"


class WorkerProcess:
    """``millbeck connect worker`` on a port."""

    def __init__(self, bootstrap: str, directory: Path, name: str = "worker") -> None:
        (self.port,) = free_ports(1)
        self._output = (directory / f"{name}.log").open("wb")
        settings = {
            "bootstrap.servers": bootstrap,
            "listeners": f"http://127.0.0.1:{self.port}",
            "key.converter": _STRING,
            "value.converter": _STRING,
            "scheduled.rebalance.max.delay.ms": "0",
            "session.timeout.ms": str(SESSION_SECONDS * 1000),
            "heartbeat.interval.ms": "1000",
            "millbeck.restart.delay.max.ms": "2000",
            "millbeck.workers.max": "2",
        }
        self._arguments = [f"--set={name}={text}" for name, text in settings.items()]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "millbeck.cli.main", "connect", "worker", "-v", *self._arguments],
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._output,
        )

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        ends_s = time.monotonic() + _SECONDS_MAX
        while True:
            content = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(
                f"http://127.0.0.1:{self.port}{path}",
                content,
                {"Content-Type": "application/json"},
                method=method,
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:
                    return json.loads(answer.read() or b"null")
            except (OSError, urllib.error.HTTPError) as error:
                if time.monotonic() > ends_s:
                    pytest.fail(f"{method} {path}: {error}")
                time.sleep(0.2)

    def children(self, word: str) -> list[int]:
        """The processes below it whose command line has this word."""
        assert self.process is not None
        parents: dict[int, list[int]] = {}
        lines: dict[int, str] = {}
        for path in Path("/proc").glob("[0-9]*"):
            try:
                fields = (path / "stat").read_text().rpartition(")")[2].split()
                lines[int(path.name)] = (path / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                parents.setdefault(int(fields[1]), []).append(int(path.name))
            except (OSError, IndexError):
                continue
        found: list[int] = []
        waiting = [self.process.pid]
        while waiting:
            below = parents.get(waiting.pop(), [])
            waiting += below
            found += [each for each in below if word in lines.get(each, "")]
        return found

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)
        self._output.close()


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    print((tmp_path / "worker.log").read_text("utf-8", "replace")[-5000:])


@pytest.mark.timeout(1800)
def test_each_line_arrives_once_whatever_is_killed(directory: Path) -> None:
    chance = random.Random(SEED)
    given, written = directory / "in.txt", directory / "out.txt"
    count = 0
    killed: Counter[str] = Counter()
    with broker({"num.partitions": "1"}) as node, given.open("w", buffering=1) as file:
        worker = WorkerProcess(node.bootstrap, directory)
        worker.start()
        source = {"connector.class": "FileStreamSource", "file": str(given), "topic": "lines"}
        sink = {"connector.class": "FileStreamSink", "file": str(written), "topics": "lines"}
        worker.ask("POST", "/connectors", {"name": "source", "config": source})
        worker.ask("POST", "/connectors", {"name": "sink", "config": sink})
        try:
            for _ in range(KILLS):
                ends_s = time.monotonic() + chance.uniform(2.0, 8.0)
                for number in range(LINES_PER_KILL):
                    file.write(f"line {count + number}\n")
                    if number % 100 == 0:
                        time.sleep(0.05)
                count += LINES_PER_KILL
                time.sleep(max(0.0, ends_s - time.monotonic()))
                victim = chance.choice(("worker", "java", "task", "task", "broker"))
                killed[victim] += 1
                _kill(victim, worker, node)
            ends_s = time.monotonic() + _SECONDS_MAX
            while _lines(written) < count and time.monotonic() < ends_s:
                time.sleep(0.5)
            time.sleep(2.0)
        finally:
            worker.stop()
    print(f"{count} lines, killed: {dict(killed)}")
    found = written.read_text().splitlines()
    missing = set(range(count)) - {int(line.removeprefix("line ")) for line in found}
    doubled = [line for line, times in Counter(found).items() if times > 1]
    assert (len(missing), len(doubled)) == (0, 0), (sorted(missing)[:5], doubled[:5])
    assert found == [f"line {number}" for number in range(count)]


@pytest.mark.timeout(600)
def test_another_worker_goes_on_soon_and_others_are_not_disturbed(directory: Path) -> None:
    with broker({"num.partitions": "1"}) as node:
        workers = {name: WorkerProcess(node.bootstrap, directory, name) for name in ("worker", "other")}
        try:
            for worker in workers.values():
                worker.start()
                worker.ask("GET", "/connectors")
            by_port = {str(worker.port): name for name, worker in workers.items()}
            lines: dict[str, int] = {}
            for pair in ("a", "b"):
                (directory / f"{pair}.txt").touch()
                _carry_from(workers["worker"], directory, pair)
                lines[pair] = 0
            ends_s = time.monotonic() + _SECONDS_MAX
            while not all(_lines(directory / f"out-{pair}.txt") for pair in lines) and time.monotonic() < ends_s:
                _feed(directory, lines, 1.0)
            _feed(directory, lines, 3.0)
            owners = {
                name: by_port[found["status"]["connector"]["worker_id"].rpartition(":")[2]]
                for name, found in workers["worker"].ask("GET", "/connectors?expand=status").items()
            }
            assert set(owners.values()) == set(workers), owners
            lost = owners["sink-a"]
            survivor = workers["other" if lost == "worker" else "worker"]
            process = workers[lost].process
            assert process is not None
            before = {name: _turns(survivor, name) for name, owner in owners.items() if owner != lost}
            process.kill()
            process.wait()
            killed_s = time.monotonic()
            reached = lines["a"] + 1
            while _lines(directory / "out-a.txt") < reached and time.monotonic() < killed_s + _SECONDS_MAX:
                _feed(directory, lines, 0.2)
            seconds = time.monotonic() - killed_s
            print(f"{owners}; the survivor went on after {seconds:.1f} s")
            assert seconds < SESSION_SECONDS + 5
            assert all(_turns(survivor, name) > turns for name, turns in before.items() if turns)
            for pair, count in lines.items():
                ends_s = time.monotonic() + _SECONDS_MAX
                while _lines(directory / f"out-{pair}.txt") < count and time.monotonic() < ends_s:
                    time.sleep(0.2)
                written = (directory / f"out-{pair}.txt").read_text().splitlines()
                assert written == [f"line {number}" for number in range(count)]
        finally:
            for worker in workers.values():
                worker.stop()


def _carry_from(worker: WorkerProcess, directory: Path, pair: str) -> None:
    source = {"connector.class": "FileStreamSource", "file": str(directory / f"{pair}.txt"), "topic": f"lines-{pair}"}
    sink = {"connector.class": "FileStreamSink", "file": str(directory / f"out-{pair}.txt"), "topics": f"lines-{pair}"}
    worker.ask("POST", "/connectors", {"name": f"source-{pair}", "config": source})
    worker.ask("POST", "/connectors", {"name": f"sink-{pair}", "config": sink})


def _feed(directory: Path, lines: dict[str, int], seconds: float) -> None:
    """Append a line to each file every 100 ms."""
    ends_s = time.monotonic() + seconds
    while time.monotonic() < ends_s:
        for pair in lines:
            with (directory / f"{pair}.txt").open("a") as file:
                file.write(f"line {lines[pair]}\n")
            lines[pair] += 1
        time.sleep(0.1)


def _turns(worker: WorkerProcess, name: str) -> int:
    """The turns of a connector, as the worker's metrics have them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    found = [line for line in text.splitlines() if line.startswith(f'millbeck_connect_turns{{connector="{name}"}}')]
    return int(float(found[0].rpartition(" ")[2])) if found else 0


def _kill(victim: str, worker: WorkerProcess, node: Any) -> None:
    assert worker.process is not None
    if victim == "worker":
        worker.process.kill()
        worker.process.wait()
        worker.start()
    elif victim == "broker":
        node.kill()
        node.start()
    else:
        for process in worker.children("java" if victim == "java" else "pyspark.daemon"):
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
