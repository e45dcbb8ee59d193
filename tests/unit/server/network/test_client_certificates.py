"""Who a client is on an SSL listener: by its certificate and the mapping rules, on a node that runs."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.authority import Authority
from tests.unit.server.harness.real_node import running

AUTHORITY = Authority()


class Listening:
    """A node with one SSL listener that asks for certificates."""

    def __init__(self, directory: Path, **options: str) -> None:
        self.directory = directory
        (directory / "node.pem").write_bytes(AUTHORITY.issue())
        (directory / "trust.pem").write_bytes(AUTHORITY.pem)
        self.options: dict[str, Any] = {
            "listeners": "SSL://127.0.0.1:0",
            "ssl_keystore_location": str(directory / "node.pem"),
            "ssl_truststore_location": str(directory / "trust.pem"),
            "ssl_client_auth": "requested",
            **options,
        }

    def client(self, name: str | None, *, organization: str = "") -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=AUTHORITY.pem.decode())
        if name is not None:
            path = self.directory / "client.pem"
            path.write_bytes(AUTHORITY.issue(name, organization=organization))
            context.load_cert_chain(path)
        return context


def until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.005)


def principal_of(listening: Listening, client: ssl.SSLContext) -> str | None:
    """The principal of a connection, as the node sees it; None if the node closes it."""
    with running(listening.directory / "data", **listening.options) as node:
        listener = node.listeners[0]
        with (
            socket.create_connection(("127.0.0.1", listener.port), timeout=10) as plain,
            client.wrap_socket(plain, server_hostname="localhost"),
        ):
            assert listener.tls is not None
            statistics = listener.tls.statistics
            until(lambda: statistics.succeeded)
            connections = list(listener.connections.values())
            if not connections or connections[0]._is_closing:
                return None
            return str(connections[0].principal)


def test_the_principal_is_the_name_in_the_certificate(tmp_path: Path) -> None:
    listening = Listening(tmp_path)
    client = listening.client("alice, a", organization="Example")
    assert principal_of(listening, client) == "User:CN=alice\\, a,O=Example"


def test_without_a_certificate_the_client_is_anonymous(tmp_path: Path) -> None:
    listening = Listening(tmp_path)
    assert principal_of(listening, listening.client(None)) == "User:ANONYMOUS"


def test_the_rules_of_the_listener_give_the_name(tmp_path: Path) -> None:
    rules = {"listener.name.ssl.ssl.principal.mapping.rules": "RULE:^CN=(.*?),O=Example$/$1/U,DEFAULT"}
    listening = Listening(tmp_path, **rules)
    assert principal_of(listening, listening.client("alice", organization="Example")) == "User:ALICE"


def test_a_client_that_no_rule_names_is_disconnected(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    listening = Listening(tmp_path, ssl_principal_mapping_rules="RULE:^CN=bob$/bob/")
    with contextlib.suppress(OSError), caplog.at_level("INFO"):
        assert principal_of(listening, listening.client("alice")) is None
    assert "no rule of ssl.principal.mapping.rules applies to the certificate of CN=alice" in caplog.text


def test_stalled_handshakes_count_against_the_limit_of_an_address(tmp_path: Path) -> None:
    listening = Listening(tmp_path, max_connections_per_ip="3")
    with running(tmp_path / "data", **listening.options) as node, contextlib.ExitStack() as open_sockets:
        listener = node.listeners[0]
        for _ in range(3):
            plain = open_sockets.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=10))
            plain.sendall(b"\x16\x03\x01")  # the beginning of a handshake
        until(lambda: len(listener.connections) == 3)
        refused = open_sockets.enter_context(socket.create_connection(("127.0.0.1", listener.port), timeout=10))
        with contextlib.suppress(ConnectionResetError):
            assert refused.recv(1) == b""


def test_failed_handshakes_are_counted_by_their_reason(tmp_path: Path) -> None:
    listening = Listening(tmp_path)
    with running(tmp_path / "data", **listening.options) as node:
        listener = node.listeners[0]
        assert listener.tls is not None
        with socket.create_connection(("127.0.0.1", listener.port), timeout=10) as plain:
            plain.sendall(b"\x00\x00\x00\x12\x00\x12\x00\x03")
            failed = listener.tls.statistics.failed
            until(lambda: sum(failed.values()))
        assert {reason.value: count for reason, count in failed.items() if count} == {"not_tls": 1}
        shown = node.render_metrics()
    assert 'millbeck_tls_connections_total{listener="SSL",outcome="not_tls"} 1' in shown
    assert re.search(r'millbeck_certificate_days_left\{listener="SSL",role="listener"\} 364\.9', shown)
    assert re.search(r'millbeck_certificate_reloads_total\{[^}]*outcome="refused"[^}]*\} 0', shown)
