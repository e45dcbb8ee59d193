"""TLS from PEM files: what is wrong with them is named, and what is right works with a client that is not ours."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import SslOptions
from millbeck.server.network.tls import load_listener
from tests.unit.server.harness.real_node import running

ENVIRONMENT = real_environment()
CLIENT: dict[str, Any] = {"socket.timeout.ms": 10_000, "api.version.request.timeout.ms": 10_000}


class Pems:
    """A server's certificate and key in one file, and the authority that signed it."""

    def __init__(self, directory: Path) -> None:
        self.authority = trustme.CA()
        self.certificate = self.authority.issue_cert("127.0.0.1")
        self.server = str(directory / "server.pem")
        self.trusted = str(directory / "trusted.pem")
        self.certificate.private_key_and_cert_chain_pem.write_to_path(self.server)
        self.authority.cert_pem.write_to_path(self.trusted)
        self._directory = directory

    def encrypted(self, password: bytes) -> str:
        key = serialization.load_pem_private_key(self.certificate.private_key_pem.bytes(), None)
        text = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(password),
        )
        path = self._directory / "encrypted.pem"
        path.write_bytes(text + b"".join(each.bytes() for each in self.certificate.cert_chain_pems))
        return str(path)

    def client(self) -> str:
        path = str(self._directory / "client.pem")
        self.authority.issue_cert("client@example.org").private_key_and_cert_chain_pem.write_to_path(path)
        return path


@pytest.fixture(scope="module")
def pems(tmp_path_factory: pytest.TempPathFactory) -> Pems:
    return Pems(tmp_path_factory.mktemp("pems"))


def context(**options: Any) -> ssl.SSLContext:
    return load_listener(SslOptions.of(**options), "SSL", ENVIRONMENT).context.context


def test_a_certificate_and_its_key_are_enough(pems: Pems) -> None:
    made = context(ssl_keystore_location=pems.server)
    assert made.verify_mode is ssl.CERT_NONE
    assert made.minimum_version == ssl.TLSVersion.TLSv1_2


@pytest.mark.parametrize("versions", ["TLSv1.3", "TLSv1.2", "TLSv1.2,TLSv1.3"])
def test_the_enabled_versions_bound_what_is_spoken(pems: Pems, versions: str) -> None:
    made = context(ssl_keystore_location=pems.server, ssl_enabled_protocols=versions)
    names = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
    spoken = [names[each] for each in versions.split(",")]
    assert (made.minimum_version, made.maximum_version) == (spoken[0], spoken[-1])


def test_an_encrypted_key_needs_its_password_and_never_asks_the_terminal(
    pems: Pems, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = pems.encrypted(b"hush")
    given: list[object] = []

    load = ssl.SSLContext.load_cert_chain

    def recording(made: ssl.SSLContext, certfile: Any, keyfile: Any = None, password: Any = None) -> None:
        given.append(password)
        load(made, certfile, keyfile, password)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", recording)
    context(ssl_keystore_location=location, ssl_key_password="hush")
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location"):
        context(ssl_keystore_location=location)
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location"):
        context(ssl_keystore_location=location, ssl_key_password="wrong")
    # Without one, OpenSSL would ask on the terminal: that attempt ends before.
    assert given == ["hush", "wrong"]
    assert context(ssl_keystore_location=pems.server)
    assert given[-1] == ""


def test_what_is_missing_or_broken_is_named(pems: Pems, tmp_path: Path) -> None:
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location is not set, but SSL listener SSL"):
        context()
    with pytest.raises(InvalidConfig, match="/no/such is not usable"):
        context(ssl_keystore_location="/no/such")
    with pytest.raises(InvalidConfig, match="is not usable"):
        context(ssl_keystore_location=pems.trusted)
    with pytest.raises(InvalidConfig, match=r"ssl\.truststore\.location is not set"):
        context(ssl_keystore_location=pems.server, ssl_client_auth="required")
    empty = tmp_path / "empty.pem"
    empty.write_bytes(b"")
    with pytest.raises(InvalidConfig, match=r"ssl\.truststore\.location"):
        context(ssl_keystore_location=pems.server, ssl_client_auth="required", ssl_truststore_location=str(empty))


@pytest.mark.parametrize(
    ("text", "mode"),
    [("none", ssl.CERT_NONE), ("requested", ssl.CERT_OPTIONAL), ("required", ssl.CERT_REQUIRED)],
)
def test_clients_may_be_asked_for_certificates(pems: Pems, text: str, mode: ssl.VerifyMode) -> None:
    made = context(ssl_keystore_location=pems.server, ssl_client_auth=text, ssl_truststore_location=pems.trusted)
    assert made.verify_mode is mode


def test_the_certificate_is_presented_with_its_chain(tmp_path: Path) -> None:
    other = Pems(tmp_path)
    made = context(ssl_keystore_location=other.server)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = made.wrap_bio(incoming, outgoing, server_side=True)
    trusting = ssl.create_default_context(cafile=other.trusted)
    to_client, to_server = outgoing, incoming
    client = trusting.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert client.getpeercert()


def test_librdkafka_produces_and_consumes_over_tls(pems: Pems, tmp_path: Path) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    settings: dict[str, Any] = {
        "listeners": "SSL://127.0.0.1:0",
        "ssl_keystore_location": pems.server,
        "ssl_keystore_type": "PEM",
        "ssl_truststore_location": pems.trusted,
        "ssl_truststore_type": "PEM",
        "ssl_client_auth": "required",
        "message_max_bytes": "5000000",
    }
    values = [b"small", b"x" * 200_000, bytes(range(256)) * 10_000]
    with running(tmp_path / "data", **settings) as node:
        common = CLIENT | {
            "bootstrap.servers": f"127.0.0.1:{node.listeners[0].port}",
            "security.protocol": "SSL",
            "ssl.ca.location": pems.trusted,
            "ssl.certificate.location": pems.client(),
            "ssl.key.location": pems.client(),
        }
        producer = confluent_kafka.Producer(common | {"message.max.bytes": 5_000_000, "linger.ms": 0})
        failures: list[Any] = []
        for value in values:
            producer.produce("t", value, on_delivery=lambda error, message: failures.append(error) if error else None)
        assert producer.flush(20) == 0
        assert failures == []
        consumer = confluent_kafka.Consumer(common | {"group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        read: list[bytes] = []
        for _ in range(200):
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                read.append(message.value())
            if len(read) == len(values):
                break
        consumer.close()
        assert read == values
