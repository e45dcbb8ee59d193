"""A cluster of Kafka Connect is stopped, workers of ours go on with its topics, and then it goes on again."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from millbeck.pipeline.connect.worker.group import ForeignWorkers
from millbeck.testing.broker_process import broker
from tests.interop.connect.record_worker import HOST, PORT, WORKER, wait_until_healthy
from tests.interop.connect.requests import Request
from tests.interop.connect.served_worker import ask, served
from tools import peers

SECONDS_MAX = 60.0
STRING = "org.apache.kafka.connect.storage.StringConverter"
FOREIGN = "org.apache.kafka.connect.tools.VerifiableSinkConnector"


class JavaWorker:
    def __init__(self, folder: Path, bootstrap: str) -> None:
        (folder / "worker.properties").write_text(WORKER.format(bootstrap=bootstrap, host=HOST, port=PORT))
        command = ["java", "-Xmx256m", "-Duser.timezone=UTC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"]
        command += ["-cp", f"{peers.peer_path('kafka-connect')}/*", "org.apache.kafka.connect.cli.ConnectDistributed"]
        self._process = subprocess.Popen(
            [*command, "worker.properties"],
            cwd=folder,
            env=os.environ | {"LC_ALL": "C.UTF-8"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until_healthy()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


class Files:
    """The source's file and the sink's."""

    def __init__(self, folder: Path) -> None:
        self._given, self._written = folder / "in.txt", folder / "out.txt"
        self.count = 0

    def carry(self, count: int) -> None:
        """Append lines, and wait until they are in the sink's file."""
        with self._given.open("a") as file:
            file.writelines(f"line {self.count + number}\n" for number in range(count))
        self.count += count
        _until(lambda: len(self.lines()) >= self.count, lambda: f"{len(self.lines())} lines of {self.count}")

    def lines(self) -> list[str]:
        return self._written.read_text().splitlines() if self._written.exists() else []


def _until(reached: Callable[[], bool], say: Callable[[], object]) -> None:
    ends_s = time.monotonic() + SECONDS_MAX
    while not reached():
        assert time.monotonic() < ends_s, say()
        time.sleep(0.1)


def _states(name: str) -> list[str]:
    status, _, found = ask(Request("GET", f"/connectors/{name}/status"))
    return [found["connector"]["state"], *(task["state"] for task in found["tasks"])] if status == 200 else []


def _position() -> Any:
    return ask(Request("GET", "/connectors/source/offsets"))[2]["offsets"]


@pytest.mark.timeout(400)
def test_connectors_go_from_java_workers_to_ours_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = Files(tmp_path)
    strings = {"key.converter": STRING, "value.converter": STRING}
    source = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines", **strings}
    sink = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines", **strings}
    foreign = {"connector.class": FOREIGN, "topics": "lines", "name": "foreign", "id": "foreign"}
    with broker() as node:
        java = JavaWorker(tmp_path, node.bootstrap)
        assert ask(Request("POST", "/connectors", {"name": "source", "config": source}))[0] == 201
        assert ask(Request("POST", "/connectors", {"name": "sink", "config": sink}))[0] == 201
        has_foreign = ask(Request("PUT", "/connectors/foreign/config", foreign))[0] == 201
        files.carry(100)
        with (
            pytest.raises(ForeignWorkers, match="has workers of Apache Kafka Connect"),
            served(node.bootstrap, **{"group.id": "connect-cluster", "listeners": f"http://{HOST}:0"}),
        ):
            pass
        java.stop()
        for _ in range(2):
            settings = {"config.storage.topic": "connect-configs", "group.id": "connect-cluster"}
            with served(node.bootstrap, **settings):
                files.carry(100)
                _until(lambda: _states("sink") == ["RUNNING", "RUNNING"], lambda: _states("sink"))
                (position,) = _position()
                assert position["offset"]["position"] == (tmp_path / "in.txt").stat().st_size
                if has_foreign:
                    _until(lambda: _states("foreign")[:1] == ["FAILED"], lambda: _states("foreign"))
                    trace = ask(Request("GET", "/connectors/foreign/status"))[2]["connector"]["trace"]
                    assert "VerifiableSinkConnector" in trace
                    assert ask(Request("GET", "/connectors/foreign/config"))[2] == foreign
            java = JavaWorker(tmp_path, node.bootstrap)
            try:
                files.carry(100)
            finally:
                java.stop()
    assert files.lines() == [f"line {number}" for number in range(files.count)]
    assert json.loads((tmp_path / ".out.txt.positions").read_text())["positions"]
