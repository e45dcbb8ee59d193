"""What is read of a certificate, compared with the ``cryptography`` package; damaged ones are refused."""

from __future__ import annotations

import datetime
import ipaddress
import random

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID

from millbeck.security.tls.certificate import DAY_MS, in_order, parse_certificate
from millbeck.security.tls.der import DerError

AUTHORITY = ec.generate_private_key(ec.SECP256R1())


def made(
    key: object, *, subject: str = "node", issuer: str = "authority", until: int = 2060, names: bool = True
) -> bytes:
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())  # type: ignore[attr-defined]
        .serial_number(7)
        .not_valid_before(datetime.datetime(2020, 2, 29, 1, 2, 3))
        .not_valid_after(datetime.datetime(until, 12, 31, 23, 59, 59))
    )
    if names:
        alternatives: list[x509.GeneralName] = [
            x509.DNSName("a.example"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
            x509.IPAddress(ipaddress.ip_address("::1")),
            x509.RFC822Name("a@example"),
            x509.UniformResourceIdentifier("spiffe://x/y"),
            x509.RegisteredID(x509.ObjectIdentifier("1.2.3")),
        ]
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    encoded: bytes = builder.sign(AUTHORITY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)
    return encoded


KEYS = {
    "EC": (ec.generate_private_key(ec.SECP384R1()), "EC", 0, False),
    "Ed25519": (ed25519.Ed25519PrivateKey.generate(), "Ed25519", 0, False),
    "RSA 2048": (rsa.generate_private_key(65537, 2048), "RSA", 2048, False),
    "RSA above": (rsa.generate_private_key(65537, 2056), "RSA", 2056, True),
}


@pytest.mark.parametrize(("key", "kind", "bits", "is_slow"), KEYS.values(), ids=KEYS.keys())
def test_the_key_decides_where_handshakes_run(key: object, kind: str, bits: int, is_slow: bool) -> None:
    read = parse_certificate(made(key))
    assert (read.key_type, read.rsa_bits, read.has_slow_key) == (kind, bits, is_slow)


@pytest.mark.parametrize("until", [2049, 2050, 3000])
def test_names_and_dates(until: int) -> None:
    data = made(AUTHORITY, until=until)
    read, expected = parse_certificate(data), x509.load_der_x509_certificate(data)
    assert (read.subject, read.issuer) == ("CN=node", "CN=authority")
    assert read.not_before_ms == expected.not_valid_before_utc.timestamp() * 1000
    assert read.not_after_ms == expected.not_valid_after_utc.timestamp() * 1000
    assert read.days_left(read.not_after_ms - 3 * DAY_MS) == 3
    assert read.alternative_names == {
        "DNS:a.example",
        "IP:127.0.0.1",
        "IP:::1",
        "email:a@example",
        "URI:spiffe://x/y",
        "0x88:2a03",
    }


def test_a_certificate_without_alternative_names() -> None:
    assert parse_certificate(made(AUTHORITY, names=False)).alternative_names == frozenset()


def test_a_chain_is_put_in_order() -> None:
    leaf, between, root, other = (
        parse_certificate(made(AUTHORITY, subject=subject, issuer=issuer))
        for subject, issuer in (("leaf", "between"), ("between", "root"), ("root", "root"), ("other", "other"))
    )
    assert in_order([leaf, other, root, between]) == [leaf, between, root]
    assert in_order([leaf, other]) == [leaf]


def test_a_damaged_certificate_is_refused_and_nothing_else_is_raised() -> None:
    data = made(AUTHORITY)
    chance = random.Random(5)
    refused = 0
    for at in range(len(data)):
        for changed in (data[:at], data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]):
            try:
                parse_certificate(changed)
            except DerError:
                refused += 1
    assert refused > len(data)


@pytest.mark.parametrize("data", [b"", b"\x30", b"\x30\x80", b"\x30\x85\x01\x00\x00\x00\x00", b"\x3f\x00", b"\x30\x00"])
def test_what_is_no_certificate(data: bytes) -> None:
    with pytest.raises(DerError):
        parse_certificate(data)
