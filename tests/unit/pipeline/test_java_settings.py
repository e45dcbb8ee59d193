"""Settings of this package's client, as Java's client takes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from millbeck.pipeline.errors import InvalidOption
from millbeck.pipeline.java_settings import java_settings


def test_users_become_an_entry_of_jaas() -> None:
    made = java_settings(
        {"sasl.mechanisms": "SCRAM-SHA-256", "sasl.username": "app", "sasl.password": 'a"b\\c', "client.rack": "r1"}
    )
    assert made == {
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="app" password="a\\"b\\\\c";',
        "client.rack": "r1",
    }


def test_an_entry_of_jaas_is_left_as_it_is() -> None:
    given = {"sasl.mechanism": "PLAIN", "sasl.jaas.config": "x required;"}
    assert java_settings(given) == given


def test_stores_get_the_type_that_their_content_has(tmp_path: Path) -> None:
    pem, jks, other = (tmp_path / name for name in ("ca.pem", "trust.jks", "trust.p12"))
    pem.write_text("a comment\n-----BEGIN CERTIFICATE-----\n")
    jks.write_bytes(b"\xfe\xed\xfe\xed\0")
    other.write_bytes(b"0\x82")
    for path, kind in ((pem, "PEM"), (jks, "JKS"), (other, "PKCS12")):
        made = java_settings({"ssl.ca.location": str(path)})
        assert made == {"ssl.truststore.location": str(path), "ssl.truststore.type": kind}


def test_a_certificate_and_its_key_are_handed_over_as_text(tmp_path: Path) -> None:
    (tmp_path / "cert.pem").write_text("the chain")
    (tmp_path / "key.pem").write_text("the key")
    made = java_settings(
        {"ssl.certificate.location": str(tmp_path / "cert.pem"), "ssl.key.location": str(tmp_path / "key.pem")}
    )
    assert made == {
        "ssl.keystore.certificate.chain": "the chain",
        "ssl.keystore.key": "the key",
        "ssl.keystore.type": "PEM",
    }
    assert java_settings({"ssl.ca.pem": "text"}) == {
        "ssl.truststore.certificates": "text",
        "ssl.truststore.type": "PEM",
    }


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"sasl.username": "app"}, "sasl.username needs sasl.mechanism to be one of PLAIN, SCRAM-SHA-256"),
        ({"ssl.crl.location": "x"}, "ssl.crl.location: Java's client"),
        ({"ssl.ca.location": "/nowhere/ca"}, "ssl.truststore.location: /nowhere/ca cannot be read"),
    ],
)
def test_what_java_cannot_have_is_named(settings: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidOption, match=complaint):
        java_settings(settings)
