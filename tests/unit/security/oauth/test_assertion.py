"""Assertions: their claims, and signatures that an identity provider can verify."""

from __future__ import annotations

import json
from typing import Any

import pytest
from joserfc.jwk import ECKey

from millbeck.security.oauth.assertion import AssertionClaims, AssertionFailed, signed_assertion, template_of
from millbeck.security.oauth.jwt import parse_token
from millbeck.security.oauth.keys import parse_key_set, verify_signature
from tests.fixtures.identity_provider import EC, RSA, key_set

NOW_MS = 1_700_000_000_500
NOW = 1_700_000_000
KEYS: dict[str, Any] = {"RS256": RSA, "ES256": EC}


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
@pytest.mark.parametrize("passphrase", [None, "the passphrase"])
def test_an_assertion_is_signed_with_the_clients_key(algorithm: str, passphrase: str | None) -> None:
    key = KEYS[algorithm]
    pem = key.as_pem(private=True, password=passphrase)
    claims = AssertionClaims(algorithm=algorithm, issuer="me", subject="me", audience="https://idp", has_id=True)
    text = signed_assertion(claims, pem, passphrase, now_ms=NOW_MS, token_id="id")
    token = parse_token(text)
    (public,) = parse_key_set(key_set({"RS256": "rsa", "ES256": "ec"}[algorithm])).keys
    assert verify_signature(token, public) == {
        "iss": "me",
        "sub": "me",
        "aud": "https://idp",
        "iat": NOW,
        "exp": NOW + 300,
        "nbf": NOW - 60,
        "jti": "id",
    }


def test_a_template_adds_to_claims_and_header() -> None:
    header, fixed = template_of(b'{"header":{"kid":"k","alg":"none"},"payload":{"sub":"other","role":"x","exp":1}}')
    claims = AssertionClaims(subject="me", header=header, fixed=fixed, lifetime_s=10, valid_before_s=0)
    complete_header, complete = claims.complete(NOW_MS, "id")
    assert complete_header == {"kid": "k", "alg": "RS256", "typ": "JWT"}, "not the template chooses the signature"
    assert complete == {"sub": "other", "role": "x", "iat": NOW, "exp": NOW + 10, "nbf": NOW}


@pytest.mark.parametrize("data", [b"", b"[]", b'{"header":[]}', b'{"payload":"x"}'])
def test_a_template_that_is_none(data: bytes) -> None:
    with pytest.raises(AssertionFailed):
        template_of(data)


def test_keys_that_cannot_sign() -> None:
    secret = RSA.as_pem(private=True, password="right")
    plain = RSA.as_pem(private=True)
    claims = AssertionClaims()
    for pem, passphrase, reason in (
        (b"nonsense", None, "cannot be read"),
        (RSA.as_pem(private=False), None, "cannot be read"),
        (secret, None, "has a passphrase, which is not set"),
        (secret, "wrong", "passphrase must be right"),
        (plain, "not needed", "has no passphrase, but one is set"),
        (EC.as_pem(private=True), None, "cannot"),
    ):
        with pytest.raises(AssertionFailed, match=reason) as caught:
            signed_assertion(claims, pem, passphrase, now_ms=NOW_MS, token_id="id")
        assert not isinstance(caught.value.__cause__, ValueError), "a library's error may show what it has read"
    other_curve = ECKey.generate_key("P-384").as_pem(private=True)
    with pytest.raises(AssertionFailed, match="cannot sign by ES256"):
        signed_assertion(AssertionClaims(algorithm="ES256"), other_curve, None, now_ms=NOW_MS, token_id="id")


def test_claims_are_json() -> None:
    assert json.dumps(AssertionClaims(issuer="me").complete(NOW_MS, "id")[1])
