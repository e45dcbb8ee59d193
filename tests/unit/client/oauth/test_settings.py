"""Settings of OAUTHBEARER in clients: Kafka's and librdkafka's names, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.client.admin import AdminConfig
from millbeck.client.oauth.settings import (
    LOGIN_HANDLER,
    UNSECURED_LOGIN_HANDLER,
    Retriever,
    TokenSettings,
    token_settings,
)
from millbeck.kernel.errors import InvalidConfig
from millbeck.security.oauth.access import EVERYTHING, Allowed
from millbeck.security.sasl.jaas import parse_jaas

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
PACKAGE = "org.apache.kafka.common.security.oauthbearer"
URL = "https://idp.example/token"
P = "sasl.oauthbearer."
SECRET = {f"{P}client.credentials.client.id": "me", f"{P}client.credentials.client.secret": "s3cret"}


def settings(given: dict[str, Any], jaas: str = "", allowed: Allowed = EVERYTHING) -> TokenSettings:
    config = AdminConfig.parse({"bootstrap.servers": "a:1", "sasl.mechanism": "OAUTHBEARER", **given})
    options = parse_jaas(f"{MODULE} {jaas};", "sasl.jaas.config").options
    return token_settings(lambda declared: getattr(config, declared.attribute), options, allowed)


def test_client_credentials_by_kafkas_names() -> None:
    found = settings({f"{P}token.endpoint.url": URL, f"{P}scope": "read", **SECRET, "sasl.login.read.timeout.ms": 700})
    assert found.retriever is Retriever.CLIENT_CREDENTIALS
    assert found.location is not None
    assert (found.location.host, found.scope, found.client_id) == ("idp.example", "read", "me")
    assert found.client_secret is not None
    assert found.client_secret.reveal() == "s3cret"
    assert (found.limits.connect_s, found.limits.answer_s) == (4.0, 0.7)
    assert found.who == "client me"
    assert "s3cret" not in repr(found)


def test_client_credentials_by_librdkafkas_names() -> None:
    found = settings(
        {
            f"{P}method": "oidc",
            f"{P}token.endpoint.url": URL,
            f"{P}client.id": "me",
            f"{P}client.secret": "s3cret",
            f"{P}extensions": "traceId=1,cluster=x",
            "https.ca.location": "/ca.pem",
        }
    )
    assert (found.client_id, dict(found.extensions)) == ("me", {"traceId": "1", "cluster": "x"})
    assert found.tls.ssl_truststore_location == "/ca.pem"


def test_client_credentials_in_a_jaas_configuration() -> None:
    jaas = 'clientId="me" clientSecret="s3cret" scope="read" extension_a="b" ssl.truststore.location="/ca.pem"'
    found = settings({f"{P}token.endpoint.url": URL, "sasl.login.callback.handler.class": LOGIN_HANDLER}, jaas)
    assert (found.client_id, found.scope, dict(found.extensions)) == ("me", "read", {"a": "b"})
    assert found.tls.ssl_truststore_location == "/ca.pem"
    assert "s3cret" not in repr(found)


def test_client_credentials_with_an_assertion() -> None:
    found = settings(
        {
            f"{P}token.endpoint.url": URL,
            f"{P}assertion.claim.iss": "me",
            f"{P}assertion.private.key.file": "/key.pem",
            f"{P}assertion.private.key.passphrase": "s3cret",
            f"{P}assertion.algorithm": "es256",
            f"{P}assertion.claim.exp.seconds": 10,
        }
    )
    assert found.retriever is Retriever.CLIENT_CREDENTIALS
    assert found.assertion is not None
    assert (found.assertion.claims.algorithm, found.assertion.claims.lifetime_s) == ("ES256", 10)
    assert "s3cret" not in repr(found)


@pytest.mark.parametrize(
    "chosen",
    [
        {f"{P}jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"},
        {
            f"{P}jwt.retriever.class": "JwtBearerJwtRetriever",
            "sasl.login.callback.handler.class": "OAuthBearerLoginCallbackHandler",
        },
        {f"{P}grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"},
    ],
)
def test_jwt_bearer(chosen: dict[str, str]) -> None:
    found = settings({f"{P}token.endpoint.url": URL, f"{P}assertion.file": "/assertion.jwt", **chosen})
    assert found.retriever is Retriever.JWT_BEARER
    assert found.assertion is not None
    assert found.assertion.file == "/assertion.jwt"


def test_a_file() -> None:
    found = settings({f"{P}token.endpoint.url": "file:///var/run/token"})
    assert (found.retriever, found.who) == (Retriever.FILE, "the token in /var/run/token")


def test_unsecured_tokens() -> None:
    jaas = (
        'unsecuredLoginStringClaim_sub="alice" unsecuredLoginNumberClaim_n="7" unsecuredLoginListClaim_l="|a|b" '
        'unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_a="b"'
    )
    for handler in ({}, {"sasl.login.callback.handler.class": UNSECURED_LOGIN_HANDLER}):
        found = settings(dict(handler), jaas)
        assert found.retriever is Retriever.UNSECURED
        assert (found.claims, found.lifetime_s) == ({"sub": "alice", "n": 7.0, "l": ["a", "b"]}, 60.0)
        assert dict(found.extensions) == {"a": "b"}


ENDPOINT = {f"{P}token.endpoint.url": URL}
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "nowhere to ask": ({}, "", "sasl.oauthbearer.token.endpoint.url is not set"),
    "no id": (ENDPOINT, "", "client.id is not set"),
    "no secret": ({**ENDPOINT, f"{P}client.credentials.client.id": "me"}, "", "client.secret is not set"),
    "another handler": ({**ENDPOINT, "sasl.login.callback.handler.class": "com.x.H"}, "", "com.x.H is not known"),
    "another retriever": ({**ENDPOINT, f"{P}jwt.retriever.class": "com.x.R"}, "", "com.x.R is not known"),
    "another grant": ({**ENDPOINT, f"{P}grant.type": "password"}, "", "password is not one of"),
    "another method": ({**ENDPOINT, f"{P}method": "default"}, "", "only oidc is available"),
    "a file where an address is needed": (
        {f"{P}token.endpoint.url": "file:///t", f"{P}jwt.retriever.class": f"{PACKAGE}.JwtBearerJwtRetriever"},
        "",
        "needs an https: URL",
    ),
    "an address where a file is needed": (
        {**ENDPOINT, f"{P}jwt.retriever.class": f"{PACKAGE}.FileJwtRetriever"},
        "",
        "needs a file: URL",
    ),
    "no key": ({**ENDPOINT, f"{P}assertion.claim.iss": "me"}, "", "assertion.private.key.file is not set"),
    "another algorithm": (
        {
            **ENDPOINT,
            f"{P}assertion.claim.iss": "me",
            f"{P}assertion.private.key.file": "/k",
            f"{P}assertion.algorithm": "HS256",
        },
        "",
        "RS256, ES256",
    ),
    "an extension that cannot be sent": ({**ENDPOINT, **SECRET}, 'extension_a1="b"', "extensions of OAUTHBEARER"),
    "a setting of TLS that there is not": (
        {**ENDPOINT, **SECRET},
        'ssl.provider="x"',
        "ssl.provider is not an available TLS setting",
    ),
    "unsecured without a subject": ({}, 'unsecuredLoginStringClaim_name="x"', "unsecuredLoginStringClaim_sub"),
    "unsecured with a number that is none": (
        {},
        'unsecuredLoginStringClaim_sub="x" unsecuredLoginNumberClaim_n="x"',
        "is not a number",
    ),
}


@pytest.mark.parametrize(("given", "jaas", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(given: dict[str, Any], jaas: str, reason: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        settings(given, jaas)
    assert reason in str(caught.value)


def test_a_node_is_limited_to_what_is_listed() -> None:
    nothing = Allowed(urls=(), files=())
    with pytest.raises(InvalidConfig, match=r"allowed\.urls"):
        settings({**ENDPOINT, **SECRET}, allowed=nothing)
    with pytest.raises(InvalidConfig, match=r"allowed\.files"):
        settings(
            {**ENDPOINT, f"{P}assertion.claim.iss": "me", f"{P}assertion.private.key.file": "/k"},
            allowed=Allowed(urls=(URL,), files=("/other",)),
        )
