"""TLS contexts from Kafka's settings: handshakes in memory, certificates renewed while a listener is open."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from millbeck.kernel.errors import InvalidConfig
from millbeck.server.config import SslOptions
from millbeck.server.tls import renew_certificate, server_context

HOST = "broker.test"


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def write_key_store(path: Path, authority: trustme.CA) -> str:
    authority.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(path))
    return str(path)


def client_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    authority.configure_trust(context)
    return context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The client's side after both have finished; raises what either side raises."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_side = client.wrap_bio(to_client, to_server, server_hostname=HOST)
    server_side = server.wrap_bio(to_server, to_client, server_side=True)
    waiting = [client_side, server_side]
    for _ in range(10):
        for side in list(waiting):
            try:
                side.do_handshake()
                waiting.remove(side)
            except ssl.SSLWantReadError:
                continue
        if not waiting:
            return client_side
    raise AssertionError("the handshake does not end")


def certificate_of(side: ssl.SSLObject) -> bytes:
    certificate = side.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate


def test_a_client_that_trusts_the_authority_gets_in(tmp_path: Path, authority: trustme.CA) -> None:
    context = server_context(SslOptions.of(ssl_keystore_location=write_key_store(tmp_path / "a.pem", authority)), "OUT")
    assert handshake(context, client_context(authority)).version() == "TLSv1.3"
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, client_context(trustme.CA()))


def test_only_the_enabled_versions_are_spoken(tmp_path: Path, authority: trustme.CA) -> None:
    location = write_key_store(tmp_path / "a.pem", authority)
    context = server_context(SslOptions.of(ssl_keystore_location=location, ssl_enabled_protocols="TLSv1.2"), "OUT")
    client = client_context(authority)
    assert handshake(context, client).version() == "TLSv1.2"
    client.minimum_version = ssl.TLSVersion.TLSv1_3
    with pytest.raises(ssl.SSLError):
        handshake(context, client)
    old = client_context(authority)
    newest = server_context(SslOptions.of(ssl_keystore_location=location, ssl_enabled_protocols="TLSv1.3"), "OUT")
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        handshake(newest, old)


def test_an_open_listener_takes_over_a_renewed_certificate(tmp_path: Path, authority: trustme.CA) -> None:
    path = tmp_path / "a.pem"
    options = SslOptions.of(ssl_keystore_location=write_key_store(path, authority))
    context = server_context(options, "OUT")
    before = certificate_of(handshake(context, client_context(authority)))
    assert certificate_of(handshake(context, client_context(authority))) == before
    write_key_store(path, authority)
    renew_certificate(context, options, "OUT")
    assert certificate_of(handshake(context, client_context(authority))) != before


def test_a_renewal_that_fails_leaves_the_certificate(tmp_path: Path, authority: trustme.CA) -> None:
    path = tmp_path / "a.pem"
    options = SslOptions.of(ssl_keystore_location=write_key_store(path, authority))
    context = server_context(options, "OUT")
    before = certificate_of(handshake(context, client_context(authority)))
    path.write_text("not a certificate")
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location"):
        renew_certificate(context, options, "OUT")
    assert certificate_of(handshake(context, client_context(authority))) == before


@pytest.mark.parametrize("source", ["file", "text"])
def test_clients_certificates_are_asked_for(tmp_path: Path, authority: trustme.CA, source: str) -> None:
    settings = {"ssl_keystore_location": write_key_store(tmp_path / "a.pem", authority), "ssl_client_auth": "required"}
    if source == "file":
        authority.cert_pem.write_to_path(str(tmp_path / "trusted.pem"))
        settings["ssl_truststore_location"] = str(tmp_path / "trusted.pem")
    else:
        settings["ssl_truststore_certificates"] = authority.cert_pem.bytes().decode()
    context = server_context(SslOptions.of(**settings), "OUT")
    assert context.verify_mode is ssl.CERT_REQUIRED
    nobody = client_context(authority)
    with pytest.raises(ssl.SSLError):
        handshake(context, nobody)
    somebody = client_context(authority)
    authority.issue_cert("client.test").configure_cert(somebody)
    assert handshake(context, somebody).version() == "TLSv1.3"
    asked = server_context(SslOptions.of(**settings | {"ssl_client_auth": "requested"}), "OUT")
    assert handshake(asked, nobody).version() == "TLSv1.3"


def test_a_key_may_have_a_password(tmp_path: Path, authority: trustme.CA) -> None:
    issued = authority.issue_cert(HOST)
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"open sesame"))
    path = tmp_path / "a.pem"
    path.write_bytes(locked + b"".join(each.bytes() for each in issued.cert_chain_pems))
    context = server_context(SslOptions.of(ssl_keystore_location=str(path), ssl_key_password="open sesame"), "OUT")
    assert handshake(context, client_context(authority)).version() == "TLSv1.3"
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location"):
        server_context(SslOptions.of(ssl_keystore_location=str(path)), "OUT")


def test_what_is_missing_or_unusable_is_named(tmp_path: Path, authority: trustme.CA) -> None:
    location = write_key_store(tmp_path / "a.pem", authority)
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location is not set, and listener OUT"):
        server_context(SslOptions.of(), "OUT")
    with pytest.raises(InvalidConfig, match=r"ssl\.keystore\.location: /nowhere\.pem is not usable"):
        server_context(SslOptions.of(ssl_keystore_location="/nowhere.pem"), "OUT")
    with pytest.raises(InvalidConfig, match=r"ssl\.truststore\.location is not set"):
        server_context(SslOptions.of(ssl_keystore_location=location, ssl_client_auth="required"), "OUT")
    for settings in ({"ssl_truststore_location": "/nowhere.pem"}, {"ssl_truststore_certificates": "nonsense"}):
        with pytest.raises(InvalidConfig, match=r"ssl\.truststore\.\w+"):
            server_context(SslOptions.of(ssl_keystore_location=location, ssl_client_auth="required", **settings), "OUT")
