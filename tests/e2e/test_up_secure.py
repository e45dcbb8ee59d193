"""``millbeck up --secure``: the files that it writes for clients work as they are, after a second start too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer

from millbeck.cli.main import cli

SECONDS_MAX = 60


@contextmanager
def running(data: Path, *arguments: str) -> Iterator[str]:
    """The screen of a running ``millbeck up --secure``."""
    command = [sys.executable, "-m", "millbeck.cli.main", "up", "--secure", "--port", "0", "--data", str(data)]
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(data.parent)}
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if "Ctrl-C stops" in line:
            break
    try:
        yield "".join(lines)
    finally:
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS_MAX)
        assert "Traceback" not in errors
        assert process.returncode == 0, errors


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(arguments), input=stdin, env={"XDG_CONFIG_HOME": "none"})


def as_python_says(files: Path, topic: str, count: int) -> list[bytes]:
    """Produce and consume with confluent-kafka, as the screen shows it."""
    settings = json.loads((files / "app.json").read_text())
    producer = Producer(settings)
    producer.produce(topic, b"from python")
    assert producer.flush(20) == 0
    consumer = Consumer({**settings, "group.id": "readers", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found: list[bytes] = []
    deadline_s = time.monotonic() + 30
    while len(found) < count and time.monotonic() < deadline_s:
        found += [message.value() or b"" for message in consumer.consume(10, 0.2) if message.error() is None]
    consumer.close()
    return found


@pytest.mark.parametrize("nodes", [1, 3])
def test_clients_use_the_files_as_they_are(tmp_path: Path, nodes: int) -> None:
    data = tmp_path / "data"
    options = ("--nodes", str(nodes)) if nodes > 1 else ()
    files = data / "security"
    with running(data, *options) as screen:
        assert f"cd {files}" in screen
        config = ("--command-config", str(files / "app.properties"))
        assert run("produce", "greetings", *config, stdin="hello\n").exit_code == 0
        assert as_python_says(files, "greetings", 2) == [b"hello", b"from python"]
        refused = run("config", "alter", "--topic", "greetings", "--add-config", "retention.ms=1", *config)
        assert "TOPIC_AUTHORIZATION_FAILED" in refused.output
        admin = ("--command-config", str(files / "admin.properties"))
        assert (
            run("config", "alter", "--topic", "greetings", "--add-config", "retention.ms=100000", *admin).exit_code == 0
        )
        assert "app" in run("user", "list", *admin).stdout
        kept = {path.name: path.read_bytes() for path in files.glob("*.pem")}
    if nodes > 1:
        return  # a second start is the same for several, and slow
    with running(data, *options):
        assert {path.name: path.read_bytes() for path in files.glob("*.pem")} == kept
        assert as_python_says(files, "again", 1) == [b"from python"]


def test_the_registry_has_the_same_users(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    registry_client = pytest.importorskip("confluent_kafka.schema_registry")
    data = tmp_path / "data"
    files = data / "security"
    number = 0
    for _ in range(2):
        with running(data) as screen:
            url = next(line.split()[1] for line in screen.splitlines() if line.strip().startswith("registry "))
            assert url.startswith("https://127.0.0.1:")
            app, admin = (json.loads((files / f"{user}.registry.json").read_text()) for user in ("app", "admin"))
            assert app["url"] == url
            client = registry_client.SchemaRegistryClient(app)
            number = number or client.register_schema("orders-value", registry_client.Schema('"int"', "AVRO"))
            assert client.get_latest_version("orders-value").schema_id == number
            with pytest.raises(registry_client.error.SchemaRegistryError) as refused:
                client.set_compatibility(level="FULL")
            assert refused.value.http_status_code == 403
            registry_client.SchemaRegistryClient(admin).set_compatibility(level="FULL")
            del app["basic.auth.user.info"]
            with pytest.raises(registry_client.error.SchemaRegistryError) as unknown:
                registry_client.SchemaRegistryClient(app).get_subjects()
            assert unknown.value.http_status_code == 401
            done = subprocess.run(
                ["curl", "-sS", "-K", str(files / "app.curl"), f"{url}/subjects"], capture_output=True, text=True
            )
            assert done.stdout == '["orders-value"]', done.stderr
        assert all(path.stat().st_mode & 0o077 == 0 for path in files.glob("*registry*"))


def test_a_renewed_certificate_is_taken_without_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    files = data / "security"
    with running(data, "--set", "millbeck.ssl.reload.interval.ms=200"):
        bootstrap = json.loads((files / "app.json").read_text())["bootstrap.servers"]
        before = run("cert", "inspect", bootstrap).stdout
        done = run("cert", "renew", str(files / "node-1.pem"), "--ca", str(files), "--days", "50")
        assert done.exit_code == 0, done.output
        deadline_s = time.monotonic() + 20
        while "49 days left" not in (seen := run("cert", "inspect", bootstrap).stdout):
            assert time.monotonic() < deadline_s, seen
            time.sleep(0.1)
        assert "49 days left" not in before
        assert as_python_says(files, "after", 1) == [b"from python"]


def test_the_check_and_the_refusals(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    checked = run("up", "--secure", "--check", "--port", "0", "--data", data)
    assert checked.exit_code == 0, checked.output
    assert "all equal" in checked.stdout
    assert "add --secure" in run("up", "--port", "0", "--data", data).output
    plain = str(tmp_path / "plain")
    assert run("up", "--check", "--port", "0", "--data", plain).exit_code == 0
    assert "was created without --secure" in run("up", "--secure", "--port", "0", "--data", plain).output


def test_without_the_package_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("millbeck.host.certificate_authority.is_installed", lambda: False)
    told = run("up", "--secure", "--data", str(tmp_path / "data")).output
    assert "pip install 'millbeck[security]'" in told
    assert not (tmp_path / "data").exists()
