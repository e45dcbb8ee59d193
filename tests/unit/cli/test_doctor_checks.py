from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest

from millbeck.cli import doctor_checks
from millbeck.cli.doctor_checks import (
    FAIL,
    OK,
    WARN,
    Finding,
    check_certificates,
    check_compiled,
    check_directory,
    check_open_files,
    check_port,
    check_python,
    check_room,
)
from millbeck.host import real_environment
from millbeck.kernel.units import GIB, MIB
from millbeck.server.config import NodeConfig
from millbeck.server.local.embedded import embedded_settings
from millbeck.server.local.formatting import format_directories
from tests.fixtures.authority import Authority


def test_this_python_is_fine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check_python().status == OK
    monkeypatch.setattr(doctor_checks, "PYTHON_MIN", (99, 0))
    assert check_python().advice == "install Python 99.0 or newer"


def test_what_is_not_compiled_is_warned_of_with_the_reason() -> None:
    assert check_compiled(True, is_stale=False).status == OK
    assert check_compiled(False, is_stale=False).status == WARN
    stale = check_compiled(False, is_stale=True)
    assert (stale.status, stale.advice) == (WARN, "run `make build`")
    assert "edited since the last build" in stale.detail


@pytest.mark.parametrize(("limit", "status"), [(100, FAIL), (1024, WARN), (8192, OK), (-1, OK)])
def test_open_files(limit: int, status: str) -> None:
    found = check_open_files(limit)
    assert found.status == status
    assert bool(found.advice) == (status != OK)


def test_a_port_is_free_or_not(tmp_path: Path) -> None:
    directory = str(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = check_port("127.0.0.1", port, "--port", directory)
        assert taken.status == WARN
        assert "--port" in taken.advice
    assert check_port("127.0.0.1", port, "--port", directory).status == OK
    assert check_port("127.0.0.1", 0, "--port", directory).status == OK


@pytest.mark.parametrize("names", [[""], ["node-1", "node-2"]], ids=["one node", "several nodes"])
def test_the_ports_of_ones_own_node_are_fine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, names: list[str]) -> None:
    environment = real_environment()
    for name in names:
        config = NodeConfig(embedded_settings(str(tmp_path / name), host="127.0.0.1", port=0, metrics_port=0))
        format_directories(environment, config)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert check_port("127.0.0.1", port, "--port", str(tmp_path)).status == WARN
        lock = environment.files.lock(str(tmp_path / names[-1] / ".lock"))
        own = check_port("127.0.0.1", port, "--port", str(tmp_path))
        assert (own.status, own.detail) == (OK, f"in use by the node that runs on {tmp_path} (process {os.getpid()})")
        # A program of somebody else, and then one that cannot be looked into.
        monkeypatch.setattr("millbeck.cli.nodes.ports.has_open", lambda process, path: False)
        assert check_port("127.0.0.1", port, "--port", str(tmp_path)).status == WARN
        monkeypatch.setattr("millbeck.cli.nodes.ports.listening_process", lambda port: None)
        assert "presumably" in check_port("127.0.0.1", port, "--port", str(tmp_path)).detail
        lock.release()


def test_a_directory_that_is_not_there_yet(tmp_path: Path) -> None:
    state, disk = check_directory(str(tmp_path / "a" / "b"))
    assert (state.status, state.detail) == (OK, "does not exist yet; created on first start")
    assert "MiB free" in disk.detail


def test_the_states_of_a_directory(tmp_path: Path) -> None:
    directory = str(tmp_path / "logs")
    os.mkdir(directory)

    def state() -> tuple[str, str]:
        found = next(check_directory(directory))
        return found.status, found.detail

    assert state() == (OK, "empty; formatted on first start")
    environment = real_environment()
    config = NodeConfig(embedded_settings(directory, host="127.0.0.1", port=0, metrics_port=0))
    cluster = format_directories(environment, config)
    assert state() == (WARN, f"not shut down cleanly (cluster {cluster}, node 1)")
    lock = environment.files.lock(f"{directory}/.lock")
    assert state() == (OK, f"in use by a running node (cluster {cluster}, node 1)")
    lock.release()
    (tmp_path / "logs" / ".kafka_cleanshutdown").write_text("{}")
    assert state() == (OK, f"shut down cleanly (cluster {cluster}, node 1)")
    (tmp_path / "logs" / "meta.properties").write_text("version=7\n")
    assert state()[0] == FAIL


def test_somebody_elses_directory(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    assert next(check_directory(str(tmp_path))).status == WARN


@pytest.mark.parametrize(
    ("free_bytes", "total_bytes", "status"),
    [
        (0, 100 * GIB, FAIL),
        (64 * MIB - 1, 100 * GIB, FAIL),
        (64 * MIB, 100 * GIB, WARN),
        (GIB - 1, 2 * GIB, WARN),
        (GIB, 10 * GIB, OK),
        (9 * GIB, 100 * GIB, WARN),
        (10 * GIB, 100 * GIB, OK),
        (99 * GIB, 10_000 * GIB, WARN),
        (100 * GIB, 10_000 * GIB, OK),
        (GIB, 0, OK),
    ],
)
def test_little_room_is_warned_of_and_none_is_a_failure(free_bytes: int, total_bytes: int, status: str) -> None:
    found = check_room("disk", free_bytes, total_bytes)
    assert found.status == status
    assert ("retention.bytes" in found.advice) == (status != OK)


def test_the_room_of_a_directory_is_that_of_its_disk(tmp_path: Path) -> None:
    _, disk = check_directory(str(tmp_path))
    assert f"of {shutil.disk_usage(tmp_path).total >> 20} MiB" in disk.detail


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


CERTIFICATES = {
    "fine": ((-1.0, 40.0), OK, "39 days left"),
    "soon": ((-1.0, 29.5), WARN, "29 days left"),
    "now": ((-1.0, 6.5), FAIL, "6 days left"),
    "expired": ((-2.0, -1.0), FAIL, "CN=node has expired"),
}


@pytest.mark.parametrize(("days", "status", "detail"), CERTIFICATES.values(), ids=CERTIFICATES.keys())
def test_certificates_announce_their_end(tmp_path: Path, days: tuple[float, float], status: str, detail: str) -> None:
    (found,) = _certificates_with(tmp_path, Authority().issue(days=days))
    assert (found.subject, found.status) == ("certificate of SSL", status)
    assert detail in found.detail
    assert bool(found.advice) == (status != OK)


def test_a_certificate_that_cannot_be_used_is_found_before_the_start(tmp_path: Path) -> None:
    (found,) = _certificates_with(tmp_path, b"")
    assert found.status == FAIL
    assert "ssl.keystore.location" in found.detail
    (tmp_path / "trust.pem").write_bytes(Authority("other").pem)
    settings = f"ssl.client.auth=required\nssl.truststore.location={tmp_path}/trust.pem\n"
    (found,) = _certificates_with(tmp_path, Authority().issue(), settings)
    assert "not trusted by the node's own truststore" in found.detail


def _certificates_with(directory: Path, key_store: bytes, settings: str = "") -> list[Finding]:
    (directory / "node.pem").write_bytes(key_store)
    path = directory / "server.properties"
    path.write_text(f"listeners=SSL://:9093\nssl.keystore.location={directory}/node.pem\n{settings}")
    return list(check_certificates(str(path)))
