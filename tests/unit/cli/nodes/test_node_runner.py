from __future__ import annotations

import socket
from pathlib import Path

import click
import pytest

from millbeck.cli.nodes.node_runner import ErrorHints, run_node
from millbeck.host import real_environment
from millbeck.kernel.environment import Environment
from millbeck.server.config import NodeConfig
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import check_formatted, format_directories
from millbeck.server.node import Node

ADVICE = ErrorHints(
    port_in_use="use another port", address="use another host", directory_in_use="use another directory"
)


def config_of(directory: Path, port: int = 0) -> NodeConfig:
    return NodeConfig(embedded_settings(str(directory), host="127.0.0.1", port=port, metrics_port=0))


def run(config: NodeConfig, *, formats: bool = True) -> list[int]:
    """Runs a node until it serves; its ports."""
    ports: list[int] = []

    def prepare(environment: Environment) -> None:
        if formats:
            format_directories(environment, config, ignore_formatted=True)
        check_formatted(environment, config)

    async def started(node: Node) -> bool:
        ports.extend(listener.port for listener in node.listeners)
        return False

    run_node(config, prepare, started, advice=ADVICE, verbose=False)
    return ports


def test_a_node_that_is_told_to_end_closes_cleanly(tmp_path: Path) -> None:
    assert len(run(config_of(tmp_path / "logs"))) == 1
    assert (tmp_path / "logs" / ".kafka_cleanshutdown").is_file()


def test_a_port_in_use_comes_with_advice(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(click.ClickException, match=f"127.0.0.1:{port}: .*in use.*; use another port"):
            run(config_of(tmp_path / "logs", port))
    assert not (tmp_path / "logs").exists()


def test_a_directory_in_use_comes_with_advice(tmp_path: Path) -> None:
    config = config_of(tmp_path / "logs")
    environment = real_environment()
    format_directories(environment, config)
    lock = environment.files.lock(f"{tmp_path}/logs/.lock")
    try:
        with pytest.raises(click.ClickException, match="in use by another process; use another directory"):
            run(config)
    finally:
        lock.release()


def test_a_directory_that_is_not_formatted(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="millbeck storage format"):
        run(config_of(tmp_path / "logs"), formats=False)


def test_a_place_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(click.ClickException, match="file"):
        run(config_of(tmp_path / "file" / "logs"))
