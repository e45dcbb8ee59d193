from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.cli.nodes import startup_progress
from millbeck.cli.nodes.node_runner import ErrorHints, run_node
from millbeck.cli.nodes.startup_progress import startup_status
from millbeck.client.addresses import Address
from millbeck.kernel.environment import Environment
from millbeck.raft.voters import VoterSet
from millbeck.server.config import NodeConfig
from millbeck.server.local.formatting import format_directories

UNREACHABLE = "1@127.0.0.1:1,2@127.0.0.1:2,3@127.0.0.1:3"


def node(*, leader: int = 2, refusal: str = "", epoch: int = -1, machine: object = "there") -> Any:
    settings = SimpleNamespace(bootstrap_servers=(Address("seed", 9093),))
    quorum = SimpleNamespace(
        machine=machine, leader=SimpleNamespace(node_id=leader), voters=VoterSet(), settings=settings
    )
    return SimpleNamespace(
        broker=SimpleNamespace(quorum=quorum),
        broker_epoch=epoch,
        broker_part=SimpleNamespace(membership=SimpleNamespace(refusal=refusal)),
        cluster_id="KLM",
        node_id=5,
    )


@pytest.mark.parametrize(
    ("starting", "text"),
    [
        (SimpleNamespace(broker=SimpleNamespace()), "opening its logs"),
        (node(machine=None), "opening its logs"),
        (
            node(leader=-1),
            "no active controller yet. A majority of the voters must be reachable and of cluster KLM: seed:9093",
        ),
        (node(), "copying the metadata log from controller 2"),
        (
            node(refusal="DUPLICATE_BROKER_REGISTRATION"),
            "controller 2 refuses to register broker 5: DUPLICATE_BROKER_REGISTRATION",
        ),
        (node(epoch=8), "controller 2 has not unfenced broker 5 yet"),
    ],
)
def test_what_is_missing_depends_on_how_far_the_start_is(starting: Any, text: str) -> None:
    assert startup_status(starting) == text


def test_a_node_without_a_quorum_says_so_and_can_be_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(startup_progress, "PATIENCE_SECONDS", 0.3)
    config = NodeConfig(
        {
            "process.roles": "broker",
            "node.id": "7",
            "controller.quorum.voters": UNREACHABLE,
            "controller.listener.names": "CONTROLLER",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "logs"),
            "metrics.http.port": "0",
        }
    )

    def prepare(environment: Environment) -> None:
        format_directories(environment, config, cluster_id="AAAAAAAAAAAAAAAAAAAABA")

    async def begun() -> None:
        asyncio.get_running_loop().call_later(1, os.kill, os.getpid(), signal.SIGTERM)

    async def started(_: object) -> bool:
        raise AssertionError("there is nobody who could let it in")

    advice = ErrorHints(port_in_use="", address="", directory_in_use="")
    run_node(config, prepare, started, advice=advice, verbose=False, begun=begun)
    said = capsys.readouterr().err
    assert said.count("still starting: no active controller") == 1
    assert "of cluster AAAAAAAAAAAAAAAAAAAABA: 1@127.0.0.1:1, 2@127.0.0.1:2, 3@127.0.0.1:3" in said
