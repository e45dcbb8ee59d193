"""``millbeck connect list`` and the like against the REST interface, served on this machine."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from click.testing import Result

from millbeck.pipeline.connect.rest.app import ConnectApp
from millbeck.pipeline.connect.state import status
from millbeck.pipeline.connect.state.configs import TaskId
from millbeck.pipeline.connect.state.status import State, Status
from tests.unit.cli.conftest import Run
from tests.unit.pipeline.connect.rest.world import WORKER, World

SINK = {"connector.class": "FileStreamSink", "file": "out.txt", "topics": "lines"}


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def url(world: World) -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(ConnectApp(world, world.routes), log_level="warning", lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listening])))
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.fixture
def connect(run: Run, url: str) -> Callable[..., Result]:
    return lambda *arguments: run("connect", *arguments, CONNECT_URL=url)


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    path = tmp_path / "sink.json"
    path.write_text(json.dumps({"name": "orders/eu", "config": SINK}))
    return path


def test_a_connectors_life(connect: Callable[..., Result], sink: Path, world: World) -> None:
    assert connect("create", str(sink), "--state", "paused").stdout == "orders/eu is created, paused\n"
    assert connect("resume", "orders/eu").stdout == "orders/eu is resumed\n"
    listed = json.loads(connect("list", "-o", "json").stdout)
    assert listed == [
        {"name": "orders/eu", "type": "sink", "state": "running", "tasks": "1 running", "class": "FileStreamSink"}
    ]
    world.groups["connect-orders/eu"] = {("lines", 0): 7}
    shown = connect("offsets", "orders/eu", "-o", "json").stdout
    assert json.loads(shown)[0]["offset"] == {"kafka_offset": 7}
    assert "lines" in connect("offsets", "orders/eu").stdout
    assert connect("pause", "orders/eu").exit_code == 0
    assert connect("restart", "orders/eu", "--include-tasks").stdout == "orders/eu is restarted\n"
    assert connect("stop", "orders/eu").stdout == "orders/eu is stopped\n"
    offsets = sink.with_name("offsets.json")
    offsets.write_text(shown.replace("7", "3"))
    assert "altered successfully" in connect("offsets", "orders/eu", "--set", str(offsets)).stdout
    assert world.groups["connect-orders/eu"] == {("lines", 0): 3}
    assert "reset successfully" in connect("offsets", "orders/eu", "--reset").stdout
    assert connect("delete", "orders/eu").stdout == "orders/eu is deleted\n"
    assert json.loads(connect("list", "-o", "json").stdout) == []


def test_a_failed_task_shows_why(connect: Callable[..., Result], sink: Path, world: World) -> None:
    connect("create", str(sink))
    assert connect("status", "orders/eu").exit_code == 0
    failed = Status(state=State.FAILED, worker_id=WORKER, generation=1, trace="disk full\n\tat line 5")
    world.cluster.statuses.replay(*status.task_record(TaskId("orders/eu", 0), failed))
    result = connect("status", "orders/eu")
    assert result.exit_code == 1
    assert "task 0" in result.stdout
    assert "disk full" in result.stdout
    assert "line 5" not in result.stdout
    assert "line 5" in connect("status", "orders/eu", "-o", "json").stdout
    assert connect("restart", "orders/eu", "--task", "0").stdout == "task 0 of orders/eu is restarted\n"


def test_a_connector_is_changed_only_when_asked(connect: Callable[..., Result], sink: Path, world: World) -> None:
    connect("create", str(sink))
    again = connect("create", str(sink))
    assert (again.exit_code, "already exists" in again.stderr) == (1, True)
    sink.write_text(json.dumps({"name": "orders/eu", "config": {**SINK, "file": "other.txt"}}))
    assert connect("create", str(sink), "--replace").stdout == "orders/eu is configured\n"
    assert world.cluster.configs.connectors["orders/eu"]["file"] == "other.txt"


def test_the_workers_refusals_are_shown(connect: Callable[..., Result], sink: Path) -> None:
    sink.write_text(json.dumps({"name": "w", "config": {**SINK, "tasks.max": "0"}}))
    assert "Value must be at least 1" in connect("create", str(sink)).stderr
    assert "Unknown connector nothing" in connect("pause", "nothing").stderr
    assert "must be in the STOPPED state" not in connect("offsets", "nothing", "--reset").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("list", "--url", "worker:8083"), "is no address of a worker"),
        (("list", "--url", "http://127.0.0.1:1"), "no Connect worker answers at http://127.0.0.1:1"),
        (("create", "x.json", "--state", "asleep"), "asleep"),
        (("restart", "a", "--task", "0", "--only-failed"), "leave out"),
        (("offsets", "a", "--reset", "--set", "x"), "exclude each other"),
        (("offsets", "a", "--set", "nothing.json"), "nothing.json"),
    ],
)
def test_what_cannot_be_asked_is_said(run: Run, arguments: tuple[str, ...], message: str) -> None:
    result = run("connect", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_server_that_is_no_worker_is_told(run: Run) -> None:
    listening = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        connection, _ = listening.accept()
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        connection.close()

    thread = threading.Thread(target=answer)
    thread.start()
    result = run("connect", "list", "--url", f"http://127.0.0.1:{listening.getsockname()[1]}")
    thread.join()
    listening.close()
    assert "is this the address of a Connect worker?" in result.stderr
