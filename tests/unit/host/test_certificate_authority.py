"""Certificates of our own authority: what they say, and that OpenSSL accepts them."""

from __future__ import annotations

import ssl
import time
from pathlib import Path

import pytest

from millbeck.host.certificate_authority import AuthorityError, CertificateAuthority, KeyType, NewCertificate
from millbeck.security.tls.certificate import Certificate
from millbeck.security.tls.stores import read_key_store, read_trust_store

NOW_MS = int(time.time() * 1000)
DAY_MS = 86_400_000
NODE = NewCertificate(name="node-1", days=100, hosts=("localhost", "127.0.0.1", "::1"), is_server=True)
CLIENT = NewCertificate(name="alice", days=100)


@pytest.fixture(scope="module")
def authority() -> CertificateAuthority:
    return CertificateAuthority.make("authority", days=1000, now_ms=NOW_MS)


def parsed(pem: bytes) -> Certificate:
    return read_key_store(pem, store_password=None, key_password=None).chain[0]


def handshake(server_pem: bytes, client_pem: bytes, authority_pem: bytes, directory: Path, host: str) -> None:
    """A TLS connection in memory, in which both sides verify the other's certificate."""
    paths = {"server": server_pem, "client": client_pem}
    for name, pem in paths.items():
        (directory / name).write_bytes(pem)
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.verify_mode = ssl.CERT_REQUIRED
    client_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    for name, context in (("server", server_context), ("client", client_context)):
        context.load_cert_chain(directory / name)
        context.load_verify_locations(cadata=authority_pem.decode())
        context.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_context.wrap_bio(to_server, to_client, server_side=True)
    client = client_context.wrap_bio(to_client, to_server, server_hostname=host)
    pending = [client, server]
    for _ in range(10):
        for side in tuple(pending):
            try:
                side.do_handshake()
                pending.remove(side)
            except ssl.SSLWantReadError:
                continue
    assert not pending


@pytest.mark.parametrize(
    ("host", "key_type"), [*((host, KeyType.EC) for host in NODE.hosts), ("localhost", KeyType.RSA)]
)
def test_nodes_and_clients_trust_each_other(
    authority: CertificateAuthority, tmp_path: Path, host: str, key_type: KeyType
) -> None:
    wanted = NewCertificate(name="node-1", days=9, hosts=NODE.hosts, is_server=True, key_type=key_type)
    node, client = authority.issue(wanted, now_ms=NOW_MS), authority.issue(CLIENT, now_ms=NOW_MS)
    handshake(node, client, authority.certificate_pem, tmp_path, host)


def test_a_host_that_is_not_named_and_the_certificate_of_a_client_are_refused(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    node, client = authority.issue(NODE, now_ms=NOW_MS), authority.issue(CLIENT, now_ms=NOW_MS)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        handshake(node, client, authority.certificate_pem, tmp_path, "elsewhere")
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(client, node, authority.certificate_pem, tmp_path, "localhost")


def test_a_certificate_says_what_was_asked_for(authority: CertificateAuthority) -> None:
    found = parsed(authority.issue(NODE, now_ms=NOW_MS))
    assert (found.subject, found.issuer) == ("CN=node-1", "CN=authority")
    assert found.alternative_names == {"DNS:localhost", "IP:127.0.0.1", "IP:::1"}
    assert found.days_left(NOW_MS) == pytest.approx(100, abs=0.01)
    assert found.not_before_ms < NOW_MS


def test_renewing_keeps_the_owner_and_the_hosts_and_changes_the_key(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    old = authority.issue(NODE, now_ms=NOW_MS - 50 * DAY_MS)
    loaded = CertificateAuthority.load(authority.certificate_pem, authority.key_pem)
    new = loaded.renew(old, days=200, now_ms=NOW_MS)
    assert parsed(new).subject == parsed(old).subject
    assert parsed(new).alternative_names == parsed(old).alternative_names
    assert parsed(new).days_left(NOW_MS) == pytest.approx(200, abs=0.01)
    assert new.split(b"-----BEGIN CERT")[0] != old.split(b"-----BEGIN CERT")[0]
    handshake(new, authority.issue(CLIENT, now_ms=NOW_MS), authority.certificate_pem, tmp_path, "localhost")


def test_what_an_authority_signed_is_trusted_after_its_own_renewal(
    authority: CertificateAuthority, tmp_path: Path
) -> None:
    node, client = authority.issue(NODE, now_ms=NOW_MS), authority.issue(CLIENT, now_ms=NOW_MS)
    renewed = authority.renewed(days=3000, now_ms=NOW_MS)
    handshake(node, client, renewed.certificate_pem, tmp_path, "localhost")
    (certificate,) = read_trust_store(renewed.certificate_pem, password=None)
    assert certificate.days_left(NOW_MS) == pytest.approx(3000, abs=0.01)


def test_what_cannot_be_made_is_refused_with_the_reason(authority: CertificateAuthority) -> None:
    other = CertificateAuthority.make("other", days=1000, now_ms=NOW_MS)
    node = authority.issue(NODE, now_ms=NOW_MS)
    for wanted, message in (
        (NewCertificate(name="x" * 65, days=1), "1 to 64 characters"),
        (NewCertificate(name="x", days=1, hosts=("bücher.example",)), "neither an address nor a host name"),
        (NewCertificate(name="x", days=1001), "expires in .* days, before 1001 days"),
    ):
        with pytest.raises(AuthorityError, match=message):
            authority.issue(wanted, now_ms=NOW_MS)
    with pytest.raises(AuthorityError, match="was issued by CN=authority, not by CN=other"):
        other.renew(node, days=1, now_ms=NOW_MS)
    with pytest.raises(AuthorityError, match="contains no readable certificate"):
        other.renew(b"nothing", days=1, now_ms=NOW_MS)
    for certificate, key, message in (
        (node, authority.key_pem, "not that of a certificate authority"),
        (authority.certificate_pem, other.key_pem, "does not belong"),
        (b"nothing", other.key_pem, "certificate cannot be read"),
        (authority.certificate_pem, b"nothing", "key cannot be read"),
    ):
        with pytest.raises(AuthorityError, match=message):
            CertificateAuthority.load(certificate, key)
