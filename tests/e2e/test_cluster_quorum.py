"""Controllers that come and go, as processes: one joins by itself, one is let in and sent away by an administrator."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from millbeck.cli.main import cli
from tests.e2e.server_process import ServerProcess, free_ports

CLUSTER_ID = "bWlsbGJlY2stcXVvcnVtMQ"


def controller(directory: Path, node_id: int, port: int, first_port: int, **settings: str) -> ServerProcess:
    return ServerProcess(
        directory / f"node-{node_id}",
        {
            "process.roles": "controller",
            "node.id": str(node_id),
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{first_port}",
            "controller.listener.names": "CONTROLLER",
            "listeners": f"CONTROLLER://127.0.0.1:{port}",
            **settings,
        },
    )


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[str, list[ServerProcess]]]:
    """Where clients connect; a node with both roles whose log names it as the only voter, and two more controllers."""
    client_port, *ports = free_ports(4)
    first = controller(
        tmp_path,
        1,
        ports[0],
        ports[0],
        **{
            "process.roles": "broker,controller",
            "listeners": f"PLAINTEXT://127.0.0.1:{client_port},CONTROLLER://127.0.0.1:{ports[0]}",
            "default.replication.factor": "1",
        },
    )
    eager = controller(tmp_path, 2, ports[1], ports[0], **{"controller.quorum.auto.join.enable": "true"})
    patient = controller(tmp_path, 3, ports[2], ports[0])
    first.format(CLUSTER_ID, "--standalone")
    for each in (eager, patient):
        each.format(CLUSTER_ID, "--no-initial-controllers")
    processes = [first, eager, patient]
    try:
        yield f"127.0.0.1:{client_port}", processes
    finally:
        for each in processes:
            each.kill()


def test_controllers_join_and_leave(nodes: tuple[str, list[ServerProcess]]) -> None:
    bootstrap, (first, eager, patient) = nodes

    def run(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(cli, list(arguments), env={"MILLBECK_BOOTSTRAP": bootstrap}, prog_name="millbeck")
        assert done.exit_code == code, done.output
        return done.stdout if code == 0 else done.stderr

    def quorum() -> dict[str, list[int]]:
        found: dict[str, list[int]] = json.loads(run("quorum", "describe", "--output", "json"))
        return found

    def until(condition: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline_s, (quorum(), eager.said(), patient.said())
            time.sleep(0.1)

    first.start()
    assert quorum()["voters"] == [1]
    eager.start()
    patient.start()
    until(lambda: quorum()["voters"] == [1, 2])
    until(lambda: quorum()["observers"] == [3])
    file = ("--config", str(patient.config))
    assert "would add controller 3" in run("quorum", "add-controller", *file, "--dry-run")
    assert quorum()["voters"] == [1, 2]
    assert "added controller 3" in run("quorum", "add-controller", *file)
    assert (quorum()["voters"], quorum()["observers"]) == ([1, 2, 3], [])
    assert "voter" in run("quorum", "add-controller", "--command-config", str(patient.config), code=1).lower()
    run("topic", "create", "made-by-three")
    assert "would remove controller 3" in run("quorum", "remove-controller", "--controller-id", "3", "--dry-run")
    assert "removed controller 3" in run("quorum", "remove-controller", "--controller-id", "3")
    until(lambda: quorum()["voters"] == [1, 2])
    assert "is not a voter; the voters are 1, 2" in run("quorum", "remove-controller", "--controller-id", "3", code=1)
    patient.stop()
    # The one that is left must find its way back to a quorum whose voters its file does not name.
    eager.stop()
    eager.start()
    run("topic", "create", "made-by-two")
    listed = json.loads(run("topic", "list", "--output", "json"))
    assert {each["name"] for each in listed} == {"made-by-three", "made-by-two"}
