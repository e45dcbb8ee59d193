"""Requests to an identity provider, byte by byte as Kafka's clients send them, and what its answers mean."""

from __future__ import annotations

import json
from base64 import b64decode

import pytest

from millbeck.security.oauth.token_request import (
    TokenDenied,
    client_assertion_request,
    jwt_bearer_request,
    secret_request,
    token_of_answer,
)


def test_client_credentials() -> None:
    request = secret_request("my id", "s/e+c:r=et", "a b")
    assert request.form == "grant_type=client_credentials&scope=a+b"
    kind, _, value = request.headers["Authorization"].partition(" ")
    assert (kind, b64decode(value)) == ("Basic", b"my id:s/e+c:r=et")
    encoded = secret_request("my id", "s/e+c:r=et", None, url_encodes=True)
    assert encoded.form == "grant_type=client_credentials"
    assert b64decode(encoded.headers["Authorization"].split()[1]) == b"my+id:s%2Fe%2Bc%3Ar%3Det"


def test_client_credentials_with_an_assertion() -> None:
    request = client_assertion_request("a.b.c", "me", "x")
    assert request.form == (
        "client_assertion_type=urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=a.b.c"
        "&grant_type=client_credentials&client_id=me&scope=x"
    )
    assert not request.headers


def test_jwt_bearer() -> None:
    assert jwt_bearer_request("a.b.c", None).form == (
        "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=a.b.c"
    )


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(secret_request("me", "secret", None))
    assert "a.b.c" not in repr(jwt_bearer_request("a.b.c", None))


@pytest.mark.parametrize("name", ["access_token", "id_token"])
def test_the_token_of_an_answer(name: str) -> None:
    assert token_of_answer(200, json.dumps({name: " a.b.c "}).encode()) == "a.b.c"


@pytest.mark.parametrize(
    ("status", "is_final"),
    [(400, True), (401, True), (403, True), (404, True), (408, False), (429, False), (500, False), (503, False)],
)
def test_which_errors_are_final(status: int, is_final: bool) -> None:
    with pytest.raises(TokenDenied) as caught:
        token_of_answer(status, b"")
    assert caught.value.is_final == is_final


def test_an_error_says_what_the_provider_says() -> None:
    body = json.dumps({"error": "invalid_client", "error_description": "no\nsuch " + "x" * 500}).encode()
    with pytest.raises(TokenDenied) as caught:
        token_of_answer(401, body)
    assert str(caught.value).startswith(r"status 401, invalid_client: no\nsuch xxx")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b"{}", b'{"access_token":7}', b'{"access_token":" "}', b"[" * 100_000]
)
def test_an_answer_without_a_token_is_not_shown(body: bytes) -> None:
    with pytest.raises(TokenDenied) as caught:
        token_of_answer(200, body)
    assert "html" not in str(caught.value)


def test_a_token_that_is_too_long() -> None:
    with pytest.raises(TokenDenied, match="more than"):
        token_of_answer(200, json.dumps({"access_token": "a" * 200_000}).encode())
