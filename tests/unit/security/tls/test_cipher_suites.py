"""Java's cipher suite names: each is one that OpenSSL knows as a suite of TLS 1.2."""

from __future__ import annotations

import ssl

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.tls.cipher_suites import TLS_1_2, TLS_1_3, openssl_ciphers


@pytest.mark.parametrize("name", TLS_1_2)
def test_every_name_is_a_suite_of_openssl(name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    wanted = openssl_ciphers([name])
    context.set_ciphers(f"{wanted}:@SECLEVEL=0")
    assert [each["name"] for each in context.get_ciphers() if each["name"] not in TLS_1_3] == [wanted]


def test_the_order_stays_and_none_is_none() -> None:
    names = ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"]
    assert openssl_ciphers(names) == "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    assert openssl_ciphers([]) == ""


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("TLS_AES_128_GCM_SHA256", "a cipher suite of TLS 1.3"),
        ("TLS_RSA_WITH_RC4_128_MD5", "not a known cipher suite"),
        ("", "not a known cipher suite"),
    ],
)
def test_others_are_refused_by_name(name: str, reason: str) -> None:
    with pytest.raises(InvalidConfig, match=rf"ssl\.cipher\.suites: {name} .*{reason}"):
        openssl_ciphers([name])
