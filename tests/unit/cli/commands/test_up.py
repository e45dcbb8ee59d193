from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from millbeck.cli.commands import up
from millbeck.cli.commands.up import given_settings


def test_a_port_that_is_taken_is_found_before_anything_is_written(fails: Callable[..., str], tmp_path: Path) -> None:
    data = tmp_path / "logs"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        message = fails("up", "--data", str(data), "--port", port)
        assert f"cannot listen on 127.0.0.1:{port}: address already in use" in message
        assert message.endswith("choose another with --port, or --port 0 for a free one")
        message = fails("up", "--data", str(data), "--port", "0", "--metrics-port", port)
        assert message.startswith(f"--metrics-port: cannot listen on 127.0.0.1:{port}: ")
    assert "choose another with --host" in fails("up", "--data", str(data), "--host", "192.0.2.1", "--port", "9999")
    assert not data.exists()


def test_options_that_were_typed_stand_for_settings() -> None:
    with up.command.make_context("up", ["--port", "0", "--memory"]) as ctx:
        assert given_settings(ctx) == ["log.dirs", "listeners"]
    with up.command.make_context("up", []) as ctx:
        assert given_settings(ctx) == []


def test_the_check_runs_and_leaves_nothing(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(up, "_memory_directory", lambda: str(tmp_path / "memory"))
    done = run("up", "--memory", "--port", "0", "--check")
    assert done.exit_code == 0, done.stderr
    assert "500 records" in done.stdout
    assert "all equal" in done.stdout
    assert not (tmp_path / "memory").exists()


def test_a_check_that_fails_is_the_exit_code(
    fails: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object) -> None:
        raise click.ClickException("the check failed: partition 0 gave 1 of 2 records")

    monkeypatch.setattr("millbeck.cli.nodes.self_check.produce_and_consume", broken)
    assert "gave 1 of 2" in fails("up", "--data", str(tmp_path / "logs"), "--port", "0", "--check")


USAGE = {
    "no directory": (("up", "--data", "", "--port", "0"), "--data is empty"),
    "a port that is none": (("up", "--port", "70000"), "not in the range"),
    "a setting that is none": (("up", "--memory", "--port", "0", "--set", "x"), "--set: expected key=value"),
    "a value that is none": (("up", "--memory", "--port", "0", "--set", "num.partitions=x"), "num.partitions"),
    "a setting that is gone": (("up", "--memory", "--port", "0", "--set", "zookeeper.connect=x"), "has been removed"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)
