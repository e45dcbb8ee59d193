"""A worker as its own process, with Spark, that can be killed."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

_WAIT_S = 90.0


class WorkerProcess:
    """``millbeck connect worker``; ``kill`` ends Python with SIGKILL, and Java goes with it."""

    def __init__(self, bootstrap: str, directory: Path, **settings: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._log = directory / "worker.log"
        self._settings = {
            "bootstrap.servers": bootstrap,
            "group.id": "connect",
            "config.storage.topic": "connect-configs",
            "offset.storage.topic": "connect-offsets",
            "status.storage.topic": "connect-status",
            "config.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "status.storage.replication.factor": "1",
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter.schemas.enable": "false",
            "listeners": f"http://127.0.0.1:{self.port}",
            "session.timeout.ms": "6000",
            "heartbeat.interval.ms": "1000",
            "scheduled.rebalance.max.delay.ms": "0",
            "millbeck.restart.delay.max.ms": "2000",
            **{name.replace("_", "."): text for name, text in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        line = [sys.executable, "-m", "millbeck.cli.main", "connect", "worker", "-v"]
        for name, text in self._settings.items():
            line += ["--set", f"{name}={text}"]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(line, stdout=log, stderr=log, env=os.environ)
        deadline = time.monotonic() + _WAIT_S
        while True:
            assert self._process.poll() is None, self.log()
            assert time.monotonic() < deadline, self.log()
            try:
                self.ask("GET", "/")
            except (OSError, urllib.error.URLError):
                time.sleep(0.2)
            else:
                return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-6000:] if self._log.exists() else ""

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read()
        return json.loads(text) if text else None
