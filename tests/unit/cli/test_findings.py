from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from millbeck.cli import findings
from millbeck.cli.findings import (
    FAIL,
    OK,
    WARN,
    check_directory,
    check_kernels,
    check_open_files,
    check_port,
    check_python,
)
from millbeck.host import real_environment
from millbeck.server.config import NodeConfig
from millbeck.server.embedded import embedded_settings
from millbeck.server.formatting import format_directories


def test_this_python_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_python().status == OK
    monkeypatch.setattr(findings, "PYTHON_MIN", (99, 0))
    assert check_python().advice == "install Python 99.0 or newer"


def test_kernels() -> None:
    assert check_kernels(True).status == OK
    assert check_kernels(False).status == WARN


@pytest.mark.parametrize(("limit", "status"), [(100, FAIL), (1024, WARN), (8192, OK), (-1, OK)])
def test_open_files(limit: int, status: str) -> None:
    found = check_open_files(limit)
    assert found.status == status
    assert bool(found.advice) == (status != OK)


def test_a_port_is_free_or_not() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = check_port("127.0.0.1", port, "--port")
        assert taken.status == WARN
        assert "--port" in taken.advice
    assert check_port("127.0.0.1", port, "--port").status == OK
    assert check_port("127.0.0.1", 0, "--port").status == OK


def test_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    state, disk = check_directory(str(tmp_path / "a" / "b"))
    assert (state.status, state.detail) == (OK, "not there yet; made on first start")
    assert "MiB free" in disk.detail


def test_the_states_of_a_directory(tmp_path: Path) -> None:
    directory = str(tmp_path / "logs")
    os.mkdir(directory)

    def state() -> tuple[str, str]:
        found = next(check_directory(directory))
        return found.status, found.detail

    assert state() == (OK, "empty; made ready on first start")
    environment = real_environment()
    config = NodeConfig(embedded_settings(directory, host="127.0.0.1", port=0, metrics_port=0))
    cluster = format_directories(environment, config)
    assert state() == (WARN, f"not closed cleanly (cluster {cluster}, node 1)")
    lock = environment.files.lock(f"{directory}/.lock")
    assert state() == (OK, f"in use by a running node (cluster {cluster}, node 1)")
    lock.release()
    (tmp_path / "logs" / ".kafka_cleanshutdown").write_text("{}")
    assert state() == (OK, f"closed cleanly (cluster {cluster}, node 1)")
    (tmp_path / "logs" / "meta.properties").write_text("version=7\n")
    assert state()[0] == FAIL


def test_somebody_elses_directory(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    assert next(check_directory(str(tmp_path))).status == WARN


def test_little_room_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "FREE_BYTES_MIN", 1 << 62)
    _, disk = check_directory(str(tmp_path))
    assert disk.status == WARN
    assert "retention.bytes" in disk.advice


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert next(check_directory(str(tmp_path / "logs"))).status == FAIL


def test_the_directory_of_a_cluster_is_that_of_its_nodes(tmp_path: Path) -> None:
    for name in ("node-1", "node-2", "node-4"):
        config = NodeConfig(embedded_settings(str(tmp_path / name), host="127.0.0.1", port=0, metrics_port=0))
        format_directories(real_environment(), config)
    *states, disk = check_directory(str(tmp_path))
    assert [state.subject for state in states] == [f"data {tmp_path}/node-1", f"data {tmp_path}/node-2"]
    assert disk.subject == "disk"
