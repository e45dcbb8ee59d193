"""``millbeck cert inspect``: certificates in files and behind ports, with the exit code that a script looks at."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

from tests.fixtures.authority import Authority

AUTHORITY = Authority()
STORES = Path(__file__).parents[2] / "security" / "tls" / "stores"

Run = Callable[..., Result]


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """A port that presents a certificate which nobody trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    (tmp_path / "port.pem").write_bytes(AUTHORITY.issue("behind a port"))
    context.load_cert_chain(tmp_path / "port.pem")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def start() -> asyncio.Server:
        return await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
    yield server.sockets[0].getsockname()[1]
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def test_a_file_is_described(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    path.write_bytes(AUTHORITY.issue("node", rsa_bits=2048) + AUTHORITY.pem)
    done = run("cert", "inspect", str(path))
    assert done.exit_code == 0
    first, second = done.stdout.split(f"{path}: ")[1:]
    assert first.startswith("CN=node\n  issued by  CN=authority\n  for        DNS:localhost, IP:127.0.0.1\n")
    assert "key        RSA 2048" in first
    assert "364 days left" in first
    assert second.startswith("CN=authority\n")


def test_json_has_what_the_table_has(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "node.pem"
    path.write_bytes(AUTHORITY.issue(days=(-1, 6.5)))
    (row,) = json.loads(run("cert", "inspect", str(path), "-o", "json").stdout)
    assert (row["subject"], row["key"], row["days_left"]) == ("CN=node", "EC", 6)


@pytest.mark.parametrize(("days", "words"), [((-2.0, -1.0), "expired"), ((1.0, 2.0), "not valid yet")])
def test_what_is_not_valid_is_the_exit_code(run: Run, tmp_path: Path, days: tuple[float, float], words: str) -> None:
    path = tmp_path / "node.pem"
    path.write_bytes(AUTHORITY.issue(days=days))
    done = run("cert", "inspect", str(path))
    assert (done.exit_code, words in done.stdout) == (1, True)


@pytest.mark.parametrize("name", ["key.jks", "key.p12", "trust.jks", "trust.p12"])
def test_java_s_stores_are_shown_without_the_password_of_a_key(run: Run, name: str) -> None:
    done = run("cert", "inspect", str(STORES / name), "--password", "store-secret")
    assert "CN=node,O=Example,C=DE" in done.stdout


def test_a_port_is_asked(run: Run, port: int) -> None:
    assert f"127.0.0.1:{port}: CN=behind a port" in run("cert", "inspect", f"127.0.0.1:{port}").stdout


PROBLEMS = {
    "no file": (["/no/such.pem"], "/no/such.pem"),
    "a port without TLS": (["127.0.0.1:1"], "127.0.0.1:1 presents no certificate"),
    "a password is missing": ([str(STORES / "key.p12")], "give the store's password with --password"),
    "a wrong password": ([str(STORES / "key.jks"), "--password", "x"], "its password is wrong"),
}


@pytest.mark.parametrize(("arguments", "reason"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problems_are_one_line(run: Run, arguments: list[str], reason: str) -> None:
    done = run("cert", "inspect", *arguments)
    assert done.exit_code == 1
    assert reason in done.stderr
    assert len(done.stderr.splitlines()) == 1
