"""The listener with TLS, over loopback: its certificate, and users by theirs."""

from __future__ import annotations

import asyncio
import ssl
import time
from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from millbeck.host import real_environment
from millbeck.host.certificate_authority import CertificateAuthority, NewCertificate
from millbeck.kernel.errors import InvalidConfig
from millbeck.registry.election import Identity
from millbeck.registry.rest.app import RegistryApp
from millbeck.registry.rest.config import parse
from millbeck.registry.rest.forwarding import Forwarded, forward
from millbeck.registry.rest.listening import http_server, peer_tls, server_tls
from millbeck.registry.rest.serving import guard_of

NOW_MS = int(time.time() * 1000)
USERS = '[users."CN=reader"]\nroles = ["read:"]\n'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificates of a registry and of two clients, and the file of users."""
    made: Path = tmp_path_factory.mktemp("tls")
    authority = CertificateAuthority.make("authority", days=10, now_ms=NOW_MS)
    (made / "ca.pem").write_bytes(authority.certificate_pem)
    for name in ("registry", "reader", "stranger"):
        wanted = NewCertificate(name=name, days=5, hosts=("127.0.0.1",), is_server=name == "registry")
        (made / f"{name}.pem").write_bytes(authority.issue(wanted, now_ms=NOW_MS))
    (made / "users.toml").write_text(USERS)
    return made


def settings(folder: Path, **more: str) -> dict[str, str]:
    return {
        "listeners": "https://127.0.0.1:0",
        "ssl.keystore.location": str(folder / "registry.pem"),
        "ssl.truststore.location": str(folder / "ca.pem"),
        **{name.replace("_", "."): value for name, value in more.items()},
    }


async def asked(folder: Path, target: str, name: str) -> Forwarded:
    """The answer of a registry with TLS to a client with this certificate."""
    environment = real_environment()
    users = str(folder / "users.toml")
    parsed = parse(settings(folder, ssl_client_authentication="REQUIRED", millbeck_users_file=users))
    app = RegistryApp()
    app.guard = guard_of(environment, parsed.config, parsed.client)
    server = http_server(environment, app, parsed.config, parsed.tls, None)
    serving = asyncio.create_task(server.serve())
    try:
        while not server.started:
            await asyncio.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        client = parse(settings(folder, ssl_keystore_location=str(folder / f"{name}.pem"))).tls
        leader = Identity("127.0.0.1", port, "https")
        tls = peer_tls(environment, client)
        return await forward(leader, "GET", target, b"", authorization="", tls=tls, timeout_s=10)
    finally:
        server.should_exit = True
        await serving


def test_a_certificate_is_a_user(folder: Path) -> None:
    assert asyncio.run(asked(folder, "/health", "reader")).status == 503  # there is no log here
    answer = asyncio.run(asked(folder, "/metrics", "reader"))
    assert (answer.status, b"kafka_schema_registry" in answer.body) == (200, True)
    assert asyncio.run(asked(folder, "/subjects", "reader")).status == 500
    refused = asyncio.run(asked(folder, "/subjects", "stranger"))
    assert (refused.status, b"CN=stranger" in refused.body) == (401, True)


def test_a_listener_with_tls_needs_a_certificate(folder: Path) -> None:
    parsed = parse({"listeners": "https://127.0.0.1:0"})
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location"):
        server_tls(real_environment(), parsed.config, parsed.tls)
    wrong = parse(settings(folder, ssl_keystore_location=str(folder / "users.toml")))
    with pytest.raises(InvalidConfig, match=r"users\.toml is not usable"):
        server_tls(real_environment(), wrong.config, wrong.tls)


def test_a_client_is_asked_for_its_certificate_as_configured(folder: Path) -> None:
    for name, mode in (("NONE", ssl.CERT_NONE), ("REQUESTED", ssl.CERT_OPTIONAL), ("REQUIRED", ssl.CERT_REQUIRED)):
        parsed = parse(settings(folder, ssl_client_authentication=name))
        assert server_tls(real_environment(), parsed.config, parsed.tls).verify_mode is mode
