"""What is wrong is said before a worker begins."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from millbeck.cli.main import cli

pytest.importorskip("uvicorn", reason="the extra connect-worker is not installed")

WRONG = {
    "listener": (["--set", "listeners=https://a:1"], "listeners: https://a:1 is not http://host:port"),
    "setting": (["--set", "millbeck.restart.policy=never"], "millbeck.restart.policy"),
    "client": (["--set", "producer.acks=7"], "acks"),
    "variable": (
        [
            "--set=config.providers=env",
            "--set=config.providers.env.class=EnvVarConfigProvider",
            "--set=sasl.jaas.config=${env:NO_SUCH_VARIABLE_HERE}",
        ],
        "NO_SUCH_VARIABLE_HERE",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_setting_is_named(arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(cli, ["connect", "worker", *arguments])
    assert result.exit_code == 1
    assert message in result.output


def test_a_port_in_use_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = CliRunner().invoke(cli, ["connect", "worker", "--set", f"listeners=http://127.0.0.1:{port}"])
    assert result.exit_code == 1
    assert str(port) in result.output


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "worker.properties"
    result = CliRunner().invoke(cli, ["connect", "worker", str(missing)])
    assert result.exit_code != 0
    assert "worker.properties" in result.output
    missing.write_text("bootstrap.servers=127.0.0.1:1\n")
    bad = tmp_path / "sink.json"
    bad.write_text(json.dumps([]))
    result = CliRunner().invoke(cli, ["connect", "standalone", str(missing), str(bad)])
    assert result.exit_code == 1
    assert "a connector is a JSON object" in result.output
