"""Key stores and trust stores of each format. The files in ``stores`` were made by Java's keytool."""

from __future__ import annotations

import builtins
import random
import ssl
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from millbeck.security.tls import jks, pem
from millbeck.security.tls.certificate import parse_certificate
from millbeck.security.tls.stores import KeyEntry, StoreError, key_of_pem, read_key_store, read_trust_store

STORES = Path(__file__).parent / "stores"
CERTIFICATE = parse_certificate(ssl.PEM_cert_to_DER_cert((STORES / "node.pem").read_text()))


def fits(entry: KeyEntry) -> bool:
    key: Any = serialization.load_pem_private_key(entry.key, entry.password.encode() if entry.password else None)
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return public in entry.chain[0].der


@pytest.mark.parametrize(("name", "key_password"), [("key.p12", None), ("key.jks", "key-secret")])
def test_java_s_key_stores_are_read(name: str, key_password: str | None) -> None:
    data = (STORES / name).read_bytes()
    entry = read_key_store(data, store_password="store-secret", key_password=key_password)
    assert entry.chain == (CERTIFICATE,)
    assert CERTIFICATE.subject == "CN=node,O=Example,C=DE"
    assert fits(entry)


@pytest.mark.parametrize("name", ["trust.p12", "trust.jks", "node.pem"])
def test_java_s_trust_stores_are_read(name: str) -> None:
    password = None if name.endswith("pem") else "store-secret"
    assert read_trust_store((STORES / name).read_bytes(), password=password) == (CERTIFICATE,)


def test_a_jks_trust_store_needs_no_password() -> None:
    assert read_trust_store((STORES / "trust.jks").read_bytes(), password=None) == (CERTIFICATE,)


WRONG = {
    "PKCS #12 password": ("key.p12", "wrong", None, "its password is wrong"),
    "JKS password": ("key.jks", "wrong", "key-secret", "its password is wrong"),
    "JKS key password": ("key.jks", "store-secret", "wrong", "the password of the private key node is wrong"),
    "JKS, the store's password for the key": ("key.jks", "store-secret", None, "the password of the private key"),
    "JKS, no password": ("key.jks", None, None, r"set ssl\.keystore\.password"),
    "no key in JKS": ("trust.jks", "store-secret", None, "no private key in the JKS"),
    "no key in PKCS #12": ("trust.p12", "store-secret", None, "no private key"),
    "no key in PEM": ("node.pem", None, None, "BEGIN PRIVATE KEY"),
}


@pytest.mark.parametrize(("name", "store", "key", "reason"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_key_store_is_said(name: str, store: str | None, key: str | None, reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        read_key_store((STORES / name).read_bytes(), store_password=store, key_password=key)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b" \n", "it is empty"),
        (b"hello", "neither PEM nor"),
        (b"\xce\xce\xce\xce\x00", "keytool -importkeystore"),
        (b"-----BEGIN CERTIFICATE-----\n", "it has no certificate"),
        (b"-----BEGIN CERTIFICATE-----\n!!!!\n-----END CERTIFICATE-----\n", "base64"),
        (b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", "cannot be read"),
        (b"\xfe\xed\xfe\xed\x00", "truncated"),
    ],
)
def test_what_is_no_trust_store(data: bytes, reason: str) -> None:
    with pytest.raises(StoreError, match=reason):
        read_trust_store(data, password=None)


def test_a_key_and_its_chain_from_separate_texts() -> None:
    issued = trustme.CA().create_child_ca().issue_cert("a")
    chain = b"".join(each.bytes() for each in issued.cert_chain_pems)
    entry = key_of_pem(issued.private_key_pem.bytes(), b"a comment\n" + chain, None)
    assert len(entry.chain) == 2
    assert fits(entry)
    assert fits(read_key_store(entry.pem(), store_password=None, key_password=None))


def test_an_encrypted_key_stays_encrypted_and_needs_a_password() -> None:
    issued = trustme.CA().issue_cert("a")
    key = serialization.load_pem_private_key(issued.private_key_pem.bytes(), None)
    chain = issued.cert_chain_pems[0].bytes()
    for form in (serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.TraditionalOpenSSL):
        text = key.private_bytes(serialization.Encoding.PEM, form, serialization.BestAvailableEncryption(b"hush"))
        assert pem.is_encrypted(text)
        with pytest.raises(StoreError, match=r"set ssl\.key\.password"):
            key_of_pem(text, chain, None)
        assert fits(key_of_pem(text, chain, "hush"))


def test_pkcs12_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    find = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return find(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(StoreError, match=r"millbeck\[security\]"):
        read_key_store((STORES / "key.p12").read_bytes(), store_password="store-secret", key_password=None)
    read_key_store((STORES / "key.jks").read_bytes(), store_password="store-secret", key_password="key-secret")


def test_a_changed_jks_store_is_noticed_and_nothing_but_a_store_error_is_raised() -> None:
    data = (STORES / "key.jks").read_bytes()
    chance = random.Random(3)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        with pytest.raises(StoreError):
            read_key_store(changed, store_password="store-secret", key_password="key-secret")
        for damaged in (changed, data[:at]):
            try:  # without a password no digest protects the parser
                store = jks.read_jks(damaged, None)
            except jks.JksError:
                continue
            for key in store.keys:
                with pytest.raises(jks.JksError):
                    key.private_key("wrong")


def test_pem_on_one_line_is_read_as_kafka_reads_it() -> None:
    issued = trustme.CA().issue_cert("a")
    key, chain = (each.bytes().replace(b"\n", b" ") for each in (issued.private_key_pem, issued.cert_chain_pems[0]))
    entry = key_of_pem(key, chain, None)
    assert fits(entry)
    assert len(entry.key.splitlines()) > 3
