"""``millbeck cert create`` and ``renew``: files that nodes and clients can use, and that nobody else can read."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from millbeck.cli.certificates import first_certificate

Run = Callable[..., Result]
Fails = Callable[..., str]
NOW_MS = int(time.time() * 1000)


@pytest.fixture
def directory(run: Run, tmp_path: Path) -> Path:
    assert run("cert", "create", "ca", "our authority", "--ca", str(tmp_path)).exit_code == 0
    return tmp_path


def make(run: Run, directory: Path, kind: str, name: str, *options: str) -> Path:
    path = directory / f"{name}.pem"
    done = run("cert", "create", kind, name, "--ca", str(directory), "--out", str(path), *options)
    assert done.exit_code == 0, done.output
    assert done.stdout == f"ssl.keystore.location={path}\nssl.truststore.location={directory / 'ca.pem'}\n"
    return path


def test_an_authority_a_node_and_a_client(run: Run, directory: Path) -> None:
    node = make(run, directory, "node", "broker-1", "--host", "broker.example", "--host", "10.0.0.7", "--days", "30")
    client = make(run, directory, "client", "alice")
    for path in (directory / "ca.key", node, client):
        assert path.stat().st_mode & 0o777 == 0o600
    found = first_certificate(str(node))
    assert (found.subject, found.issuer) == ("CN=broker-1", "CN=our authority")
    assert found.alternative_names == {"DNS:broker.example", "IP:10.0.0.7"}
    assert found.days_left(NOW_MS) == pytest.approx(30, abs=0.1)
    assert first_certificate(str(client)).alternative_names == frozenset()
    assert run("cert", "inspect", str(node), str(client), str(directory / "ca.pem")).exit_code == 0


def test_every_name_of_this_machine(run: Run, directory: Path) -> None:
    found = first_certificate(str(make(run, directory, "node", "here", "--local", "--host", "other.example")))
    assert {"DNS:localhost", "IP:127.0.0.1", "IP:::1", "DNS:other.example"} <= found.alternative_names


def test_a_renewed_certificate_is_the_same_but_for_its_key_and_dates(run: Run, directory: Path) -> None:
    node = make(run, directory, "node", "n", "--host", "h.example", "--days", "20")
    before, text = first_certificate(str(node)), node.read_bytes()
    kept = run("cert", "renew", str(node), "--ca", str(directory), "--if-days-left", "10")
    assert "19 days left, kept" in kept.stdout
    assert node.read_bytes() == text
    done = run("cert", "renew", str(node), "--ca", str(directory), "--if-days-left", "30", "--days", "40")
    assert done.exit_code == 0, done.output
    after = first_certificate(str(node))
    assert (after.subject, after.alternative_names) == (before.subject, before.alternative_names)
    assert after.days_left(NOW_MS) == pytest.approx(40, abs=0.1)
    assert node.read_bytes().partition(b"-----END PRIVATE")[0] != text.partition(b"-----END PRIVATE")[0]
    assert node.stat().st_mode & 0o777 == 0o600
    assert run("cert", "renew", str(node), "--ca", str(directory)).exit_code == 0
    assert first_certificate(str(node)).days_left(NOW_MS) == pytest.approx(40, abs=0.1)


def test_the_authority_renews_itself_and_keeps_its_key(run: Run, directory: Path) -> None:
    key = (directory / "ca.key").read_bytes()
    done = run("cert", "renew", str(directory / "ca.pem"), "--ca", str(directory), "--days", "5000")
    assert done.exit_code == 0, done.output
    assert first_certificate(str(directory / "ca.pem")).days_left(NOW_MS) == pytest.approx(5000, abs=0.1)
    assert (directory / "ca.key").read_bytes() == key
    assert (directory / "ca.pem").stat().st_mode & 0o777 == 0o644


def test_an_encrypted_key_of_the_authority(run: Run, fails: Fails, directory: Path) -> None:
    key = load_pem_private_key((directory / "ca.key").read_bytes(), None)
    encrypted = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    (directory / "ca.key").write_bytes(encrypted)
    asked = ("cert", "create", "client", "bob", "--ca", str(directory), "--out", str(directory / "bob.pem"))
    assert "key cannot be read" in fails(*asked)
    assert "key cannot be read" in fails(*asked, MILLBECK_CA_PASSWORD="wrong")
    assert run(*asked, MILLBECK_CA_PASSWORD="secret").exit_code == 0


def test_nothing_that_is_there_is_overwritten(run: Run, fails: Fails, directory: Path) -> None:
    assert "replacing it would invalidate" in fails("cert", "create", "ca", "--ca", str(directory))
    path = make(run, directory, "client", "alice")
    again = ("cert", "create", "client", "alice", "--ca", str(directory), "--out", str(path))
    assert "renew it with" in fails(*again)
    assert run(*again, "--force").exit_code == 0


WRONG = {
    "no authority": (("create", "client", "x", "--ca", "{new}", "--out", "{new}/x.pem"), "cert create ca --ca"),
    "no name": (("create", "client"), "a client needs a name"),
    "no host": (("create", "node", "n"), "--host, or --local"),
    "a client's host": (("create", "client", "n", "--host", "h"), "cannot be used with client"),
    "an authority's host": (("create", "ca", "--host", "h"), "cannot be used with ca"),
    "a bad host": (
        ("create", "node", "n", "--host", "a b\u00fc", "--ca", "{old}", "--out", "{old}/n.pem"),
        "neither an",
    ),
    "outliving the authority": (
        ("create", "client", "n", "--days", "9999", "--ca", "{old}", "--out", "{old}/n"),
        "expires",
    ),
    "no file": (("renew", "{old}/none.pem", "--ca", "{old}"), "No such file"),
    "no certificate": (("renew", "{old}/text", "--ca", "{old}"), "neither PEM"),
    "someone else's authority": (("renew", "{old}/foreign.pem", "--ca", "{old}"), "no private key"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG.keys())
def test_usage(run: Run, fails: Fails, directory: Path, arguments: tuple[str, ...], message: str) -> None:
    (directory / "text").write_text("nothing")
    other = directory / "other"
    run("cert", "create", "ca", "--ca", str(other))
    (directory / "foreign.pem").write_bytes((other / "ca.pem").read_bytes())
    places = {"old": str(directory), "new": str(directory / "new")}
    assert message in fails("cert", *(each.format(**places) for each in arguments))


def test_without_the_package_the_message_says_what_to_install(
    fails: Fails, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("millbeck.cli.certificates.is_installed", lambda: False)
    assert "pip install 'millbeck[security]'" in fails("cert", "create", "ca", "--ca", str(tmp_path))
