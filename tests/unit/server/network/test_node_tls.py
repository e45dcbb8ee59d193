"""A node's TLS while it runs: what replaces a certificate in use, what does not, and what a client then sees."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography import x509

from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.tls import TlsContext
from millbeck.server.config import NodeConfig
from millbeck.server.network.node_tls import NodeTls
from tests.fixtures.authority import Authority

AUTHORITY = Authority()
OTHER = Authority("other")


class Node:
    """The TLS of a node with one listener, and the files it reads."""

    def __init__(self, directory: Path, **options: str) -> None:
        self.key_store = directory / "node.pem"
        self.trust_store = directory / "trust.pem"
        self.key_store.write_bytes(AUTHORITY.issue())
        self.trust_store.write_bytes(AUTHORITY.pem)
        given = {name.replace("_", "."): text.format(directory=directory) for name, text in options.items()}
        texts = {"listeners": "SSL://:0", "ssl.keystore.location": str(self.key_store)}
        self.config = NodeConfig({**texts, "millbeck.ssl.reload.interval.ms": "100", **given})
        self.tls = NodeTls(self.config, real_environment())
        self.endpoint = self.tls.of_listener("SSL")

    def reload(self) -> None:
        asyncio.run(self.tls.reload())

    def presents(self, client: ssl.SSLContext | None = None, session: ssl.SSLSession | None = None) -> Presented:
        return Presented(self.endpoint.context(), client or trusting(AUTHORITY), session)


def trusting(*authorities: Authority, identity: Path | None = None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata="".join(each.pem.decode() for each in authorities))
    if identity is not None:
        context.load_cert_chain(identity)
    return context


class Presented:
    """A handshake with a server's context: what the client got. Raises ``ssl.SSLError``."""

    def __init__(self, server: TlsContext, client: ssl.SSLContext, session: ssl.SSLSession | None = None) -> None:
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        ours = server.context.wrap_bio(to_server, to_client, server_side=True)
        theirs = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1", session=session)
        pending = [theirs, ours]
        while pending:
            try:
                pending[0].do_handshake()
                pending.pop(0)
            except ssl.SSLWantReadError:
                pending.append(pending.pop(0))
        ours.write(b"!")
        assert theirs.read(1) == b"!"  # TLS 1.3 sends its tickets before
        certificate = x509.load_der_x509_certificate(theirs.getpeercert(binary_form=True) or b"")
        self.key_type = type(certificate.public_key()).__name__
        self.subject = certificate.subject.rfc4514_string()
        self.session = theirs.session
        self.is_resumed = bool(theirs.session_reused)
        self.seen = ours.getpeercert(binary_form=True)
        """The client's certificate as the server got it."""


def test_a_renewed_certificate_of_another_key_type_is_presented_and_old_tickets_do_not_resume(tmp_path: Path) -> None:
    node, client = Node(tmp_path), trusting(AUTHORITY)
    before = node.presents(client)
    assert node.presents(client, before.session).is_resumed
    node.key_store.write_bytes(AUTHORITY.issue(rsa_bits=2048))
    node.reload()
    after = node.presents(client, before.session)
    assert (before.key_type, after.key_type) == ("ECPublicKey", "RSAPublicKey")
    assert not after.is_resumed
    assert (node.endpoint.reloads, node.endpoint.reload_failures) == (1, 0)


def test_a_reload_without_a_change_keeps_the_context_and_its_tickets(tmp_path: Path) -> None:
    node = Node(tmp_path)
    before = node.endpoint.context()
    node.reload()
    assert node.endpoint.context() is before
    assert node.endpoint.reloads == 0


def test_an_authority_that_was_removed_is_refused(tmp_path: Path) -> None:
    trusts = "{directory}/trust.pem"
    node = Node(tmp_path, ssl_client_auth="required", ssl_truststore_location=trusts, ssl_allow_dn_changes="true")
    node.trust_store.write_bytes(AUTHORITY.pem + OTHER.pem)
    node.reload()
    identity = tmp_path / "client.pem"
    identity.write_bytes(OTHER.issue("client"))
    client = trusting(AUTHORITY, identity=identity)
    assert node.presents(client).seen
    node.trust_store.write_bytes(AUTHORITY.pem)
    node.reload()
    with pytest.raises(ssl.SSLError, match=r"(?i)unknown.ca|certificate verify failed"):
        node.presents(client)


def test_a_revoked_client_is_refused_once_the_list_says_so(tmp_path: Path) -> None:
    revoked = tmp_path / "revoked.pem"
    revoked.write_bytes(AUTHORITY.revoke())
    node = Node(
        tmp_path,
        ssl_client_auth="required",
        ssl_truststore_location="{directory}/trust.pem",
        millbeck_ssl_crl_location=str(revoked),
    )
    identity = tmp_path / "client.pem"
    identity.write_bytes(AUTHORITY.issue("client", serial=77))
    client = trusting(AUTHORITY, identity=identity)
    assert node.presents(client).seen
    revoked.write_bytes(AUTHORITY.revoke(77))
    node.reload()
    with pytest.raises(ssl.SSLError, match=r"(?i)revoked|certificate verify failed"):
        node.presents(client)


REFUSED: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "it is empty"),
    "half a file": (lambda: AUTHORITY.issue()[:-40], "it has no certificate"),
    "a key that does not fit": (
        lambda: (
            AUTHORITY.issue().split(b"-----BEGIN CERT")[0]
            + b"-----BEGIN CERT"
            + AUTHORITY.issue().split(b"-----BEGIN CERT")[1]
        ),
        "key values mismatch",
    ),
    "expired": (lambda: AUTHORITY.issue(days=(-2, -1)), "the certificate of CN=node has expired"),
    "not valid yet": (lambda: AUTHORITY.issue(days=(1, 2)), "the certificate of CN=node is not valid yet"),
    "another name": (lambda: AUTHORITY.issue("other"), "from CN=node to CN=other: set ssl.allow.dn.changes=true"),
    "a host less": (lambda: AUTHORITY.issue(hosts=("localhost",)), "no longer be for IP:127.0.0.1: set ssl.allow.san"),
    "not trusted by the node itself": (lambda: OTHER.issue(), "not trusted by the node's own truststore"),
}


@pytest.mark.parametrize(("data", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_what_cannot_be_used_keeps_the_current_certificate_and_says_why(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data: Callable[[], bytes], reason: str
) -> None:
    node = Node(tmp_path, ssl_client_auth="requested", ssl_truststore_location="{directory}/trust.pem")
    before = node.endpoint.context()
    node.key_store.write_bytes(data())
    node.reload()
    node.reload()
    assert node.endpoint.context() is before
    assert node.endpoint.reload_failures == 2
    said = [record.getMessage() for record in caplog.records if "keeps its current certificate" in record.getMessage()]
    assert len(said) == 1  # not again while it is the same
    assert reason in said[0]
    node.key_store.write_bytes(AUTHORITY.issue())
    node.reload()
    assert node.endpoint.context() is not before


def test_other_names_are_taken_when_that_is_allowed(tmp_path: Path) -> None:
    node = Node(tmp_path, ssl_allow_dn_changes="true", ssl_allow_san_changes="true")
    node.key_store.write_bytes(AUTHORITY.issue("other", hosts=("127.0.0.1",)))
    node.reload()
    assert node.presents().subject == "CN=other"


def test_more_names_are_always_taken(tmp_path: Path) -> None:
    node = Node(tmp_path)
    node.key_store.write_bytes(AUTHORITY.issue(hosts=("localhost", "127.0.0.1", "more.example")))
    node.reload()
    assert node.endpoint.reloads == 1


def test_a_dynamic_change_is_taken_and_undone(tmp_path: Path) -> None:
    node = Node(tmp_path)
    (tmp_path / "new.pem").write_bytes(AUTHORITY.issue(rsa_bits=2048))
    node.config.apply_dynamic({"listener.name.ssl.ssl.keystore.location": str(tmp_path / "new.pem")}, {})
    node.reload()
    assert node.presents().key_type == "RSAPublicKey"
    node.config.apply_dynamic({}, {})
    node.reload()
    assert node.presents().key_type == "ECPublicKey"


def test_the_node_s_own_connections_are_renewed_too(tmp_path: Path) -> None:
    node = Node(tmp_path, ssl_truststore_location="{directory}/trust.pem", ssl_allow_dn_changes="true")
    source = node.tls.of_peers("SSL")
    before = source()
    node.key_store.write_bytes(AUTHORITY.issue("renewed"))
    node.reload()
    assert source() is not before
    assert node.presents(source().context).subject == "CN=renewed"


def test_a_changed_file_is_noticed_without_being_told(tmp_path: Path) -> None:
    node = Node(tmp_path)

    async def scenario() -> None:
        watching = asyncio.ensure_future(node.tls.watch())
        await asyncio.sleep(0)
        node.key_store.write_bytes(AUTHORITY.issue(rsa_bits=2048))
        async with asyncio.timeout(10):
            while not node.endpoint.reloads:
                await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(scenario())
    assert node.presents().key_type == "RSAPublicKey"


def test_a_wish_to_reload_does_not_wait_for_the_interval(tmp_path: Path) -> None:
    node = Node(tmp_path, millbeck_ssl_reload_interval_ms="3600000")

    async def scenario() -> None:
        watching = asyncio.ensure_future(node.tls.watch())
        await asyncio.sleep(0)
        node.key_store.write_bytes(AUTHORITY.issue(rsa_bits=2048))
        node.tls.want_reload()
        async with asyncio.timeout(10):
            while not node.endpoint.reloads:
                await asyncio.sleep(0.01)
        watching.cancel()

    asyncio.run(scenario())
    assert node.presents().key_type == "RSAPublicKey"


def test_an_expired_certificate_starts_with_an_error_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "old.pem").write_bytes(AUTHORITY.issue(days=(-2, -1)))
    Node(tmp_path, ssl_keystore_location="{directory}/old.pem")
    assert "the certificate of CN=node has expired" in caplog.text


def test_slow_keys_are_told_to_the_network(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert not node.endpoint.context().has_slow_key
    node.key_store.write_bytes(AUTHORITY.issue(rsa_bits=3072))
    node.reload()
    assert node.endpoint.context().has_slow_key


INLINE = {
    "both": ({"ssl_keystore_key": "{key}"}, "both set"),
    "a key alone": ({"ssl_keystore_key": "{key}", "ssl_keystore_location": ""}, "without ssl.keystore.certificate"),
    "a chain alone": ({"ssl_keystore_certificate_chain": "{key}"}, "without ssl.keystore.key"),
}


@pytest.mark.parametrize(("options", "reason"), INLINE.values(), ids=INLINE.keys())
def test_inline_pem_is_all_or_nothing(tmp_path: Path, options: dict[str, str], reason: str) -> None:
    text = AUTHORITY.issue().decode()
    with pytest.raises(InvalidConfig, match=reason):
        Node(tmp_path, **{name: text if value == "{key}" else value for name, value in options.items()})


def test_inline_pem_is_served(tmp_path: Path) -> None:
    key, _, certificate = AUTHORITY.issue("inline").decode().partition("-----BEGIN CERT")
    chain = f"-----BEGIN CERT{certificate}".replace("\n", " ")
    node = Node(tmp_path, ssl_keystore_location="", ssl_keystore_key=key, ssl_keystore_certificate_chain=chain)
    assert node.presents().subject == "CN=inline"
