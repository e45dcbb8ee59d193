"""TLS from PEM files, against a real server with certificates made for the test."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
import trustme

from millbeck.client import tls
from millbeck.client.admin import AdminConfig
from millbeck.host import real_environment
from millbeck.kernel.errors import InvalidConfig


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def trusted(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


def client_context(config: AdminConfig) -> ssl.SSLContext:
    return tls.client_context(config, real_environment()).context


def config(**settings: str) -> AdminConfig:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    return AdminConfig.parse({"bootstrap.servers": "a:1", "security.protocol": "SSL"} | texts)


def shake_hands(authority: trustme.CA, client: ssl.SSLContext, *, name: str = "localhost", asks: bool = False) -> str:
    """What the client's first line was answered with."""
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server_context)
    if asks:
        authority.configure_trust(server_context)
        server_context.verify_mode = ssl.CERT_REQUIRED

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello " + await reader.readline())
        writer.close()

    async def main() -> str:
        async with asyncio.timeout(10), await asyncio.start_server(greet, "127.0.0.1", 0, ssl=server_context) as server:
            port = server.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client, server_hostname=name)
            writer.write(b"world\n")
            answer = await reader.read()
            writer.close()
            return answer.decode().strip()

    return asyncio.run(main())


@pytest.mark.parametrize("setting", ["ssl_truststore_location", "ssl_ca_location"])
def test_a_trusted_broker_is_spoken_to(authority: trustme.CA, trusted: str, setting: str) -> None:
    assert shake_hands(authority, client_context(config(**{setting: trusted}))) == "hello world"


def test_a_broker_nobody_vouches_for_is_refused(trusted: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(trustme.CA(), client_context(config(ssl_truststore_location=trusted)))


def test_a_broker_under_another_name_is_refused_unless_names_do_not_matter(authority: trustme.CA, trusted: str) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(authority, client_context(config(ssl_truststore_location=trusted)), name="elsewhere")
    careless = config(ssl_truststore_location=trusted, ssl_endpoint_identification_algorithm="")
    assert shake_hands(authority, client_context(careless), name="elsewhere") == "hello world"


@pytest.mark.parametrize("in_one_file", [True, False])
def test_a_broker_that_asks_gets_the_client_s_certificate(
    authority: trustme.CA, trusted: str, tmp_path: Path, in_one_file: bool
) -> None:
    own = authority.issue_cert("client")
    own.private_key_and_cert_chain_pem.write_to_path(tmp_path / "both.pem")
    own.cert_chain_pems[0].write_to_path(tmp_path / "certificate.pem")
    own.private_key_pem.write_to_path(tmp_path / "key.pem")
    files = (
        {"ssl_keystore_location": str(tmp_path / "both.pem")}
        if in_one_file
        else {
            "ssl_certificate_location": str(tmp_path / "certificate.pem"),
            "ssl_key_location": str(tmp_path / "key.pem"),
        }
    )
    context = client_context(config(ssl_truststore_location=trusted, **files))
    assert shake_hands(authority, context, asks=True) == "hello world"


@pytest.mark.parametrize("names", ["kafka", "librdkafka"])
def test_keys_and_certificates_may_be_text(authority: trustme.CA, names: str) -> None:
    own = authority.issue_cert("client")
    key, chain, trusted = (
        each.bytes().decode() for each in (own.private_key_pem, own.cert_chain_pems[0], authority.cert_pem)
    )
    settings = (
        {"ssl_keystore_key": key, "ssl_keystore_certificate_chain": chain, "ssl_truststore_certificates": trusted}
        if names == "kafka"
        else {"ssl_key_pem": key, "ssl_certificate_pem": chain, "ssl_ca_pem": trusted}
    )
    assert shake_hands(authority, client_context(config(**settings)), asks=True) == "hello world"


def test_java_s_stores_are_read() -> None:
    stores = Path(__file__).parents[1] / "security" / "tls" / "stores"
    made = client_context(
        config(
            ssl_keystore_location=str(stores / "key.jks"),
            ssl_keystore_type="JKS",
            ssl_keystore_password="store-secret",
            ssl_key_password="key-secret",
            ssl_truststore_location=str(stores / "trust.p12"),
            ssl_truststore_password="store-secret",
        )
    )
    assert made.cert_store_stats()["x509"] == 1


def test_suites_and_versions_are_chosen(authority: trustme.CA, trusted: str) -> None:
    suite = {"ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ssl_enabled_protocols": "TLSv1.2"}
    made = client_context(config(ssl_truststore_location=trusted, **suite))
    assert made.maximum_version is ssl.TLSVersion.TLSv1_2
    assert "ECDHE-ECDSA-AES128-GCM-SHA256" in [each["name"] for each in made.get_ciphers()]
    assert shake_hands(authority, made) == "hello world"
    with pytest.raises(InvalidConfig, match="TLS_AES_128_GCM_SHA256 is a cipher suite"):
        client_context(config(ssl_cipher_suites="TLS_AES_128_GCM_SHA256"))


MISTAKES = {
    "no such trust": {"ssl_truststore_location": "missing.pem"},
    "no such certificate": {"ssl_keystore_location": "missing.pem"},
    "a key alone": {"ssl_key_location": "missing.pem"},
}


@pytest.mark.parametrize("settings", MISTAKES.values(), ids=MISTAKES.keys())
def test_a_file_that_cannot_be_used_is_named(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match=r"ssl\.key\.location|missing\.pem"):
        client_context(config(**settings))


def test_old_protocols_are_off(trusted: str) -> None:
    assert client_context(config(ssl_truststore_location=trusted)).minimum_version is ssl.TLSVersion.TLSv1_2
