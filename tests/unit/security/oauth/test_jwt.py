"""Tokens taken apart: every malformed one is refused before anything in it is used."""

from __future__ import annotations

import json

import pytest

from millbeck.security.oauth.jwt import TOKEN_LENGTH_MAX, TokenRefused, encoded, parse_token, unsecured_token

CLAIMS = encoded(b'{"sub":"alice"}')


def with_header(**header: object) -> str:
    return f"{encoded(json.dumps(header).encode())}.{CLAIMS}.c2ln"


def test_a_token_is_its_header_its_claims_and_its_signature() -> None:
    token = parse_token(with_header(alg="RS256", kid="one", typ="at+jwt"))
    assert (token.algorithm, token.key_id, token.claims, token.signature) == (
        "RS256",
        "one",
        b'{"sub":"alice"}',
        b"sig",
    )
    assert token.signed.decode() == with_header(alg="RS256", kid="one", typ="at+jwt").rpartition(".")[0]


def test_an_unsecured_token_has_an_empty_signature() -> None:
    token = parse_token(unsecured_token({"sub": "alice"}))
    assert (token.algorithm, token.signature, token.claims) == ("none", b"", b'{"sub":"alice"}')


@pytest.mark.parametrize("kind", [None, "JWT", "jwt", "at+jwt", "application/at+jwt"])
def test_the_types_of_access_tokens(kind: str | None) -> None:
    header = {"alg": "RS256"} if kind is None else {"alg": "RS256", "typ": kind}
    assert parse_token(with_header(**header)).key_id is None


def with_header_text(text: bytes) -> str:
    return f"{encoded(text)}.{CLAIMS}.c2ln"


MALFORMED = {
    "empty": ("", "parts"),
    "two parts": ("a.b", "parts"),
    "five parts, as if encrypted": ("a.b.c.d.e", "parts"),
    "not base64": ("*.b.c", "header is not base64"),
    "base64 of the other alphabet": (with_header(alg="RS256").replace(CLAIMS, "a+/b"), "claims"),
    "base64 cut": (f"a.{CLAIMS}.c2ln", "header is not base64"),
    "header no JSON": (with_header_text(b"nonsense"), "not valid JSON"),
    "header no object": (with_header_text(b"[1]"), "not a JSON object"),
    "header too deep": (with_header_text(b"[" * 50_000), "not valid JSON"),
    "header in another encoding": (with_header_text(b"\xff\xfe"), "not valid JSON"),
    "a name twice": (with_header_text(b'{"alg":"none","alg":"RS256"}'), "not valid JSON"),
    "infinity": (with_header_text(b'{"alg":Infinity}'), "not valid JSON"),
    "a number of many digits": (with_header_text(b'{"alg":' + b"9" * 6000 + b"}"), "not valid JSON"),
    "no algorithm": (with_header(kid="one"), "no alg"),
    "algorithm no text": (with_header(alg=["RS256"]), "no alg"),
    "key id no text": (with_header(alg="RS256", kid={"a": 1}), "kid"),
    "key id too long": (with_header(alg="RS256", kid="k" * 1001), "kid"),
    "type of another token": (with_header(alg="RS256", typ="logout+jwt"), "typ"),
    "extension to be understood": (with_header(alg="RS256", crit=["b64"], b64=False), "crit"),
    "too long": ("a" * (TOKEN_LENGTH_MAX + 1), "characters"),
}


@pytest.mark.parametrize(("text", "reason"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_token_is_refused(text: str, reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        parse_token(text)
