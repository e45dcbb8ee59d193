"""The addresses and files that settings may name: exactly those that are listed."""

from __future__ import annotations

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.security.oauth.access import EVERYTHING, Allowed, Location, check_file, parse_location

SETTING = "sasl.oauthbearer.jwks.endpoint.url"


def test_locations() -> None:
    assert parse_location("https://idp.example/jwks?a=1#part", SETTING, EVERYTHING) == Location(
        text="https://idp.example/jwks?a=1#part", host="idp.example", port=443, target="/jwks?a=1", is_encrypted=True
    )
    assert parse_location("http://[::1]:8080", SETTING, EVERYTHING) == Location(
        text="http://[::1]:8080", host="::1", port=8080, target="/"
    )
    assert parse_location("file:///etc/key%20set.json", SETTING, EVERYTHING).path == "/etc/key set.json"


@pytest.mark.parametrize(
    "text",
    [
        "https://idp.example/jwks2",
        "https://idp.example/jwks/",
        "HTTPS://idp.example/jwks",
        "https://idp.example/jwks?",
        "http://169.254.169.254/latest/meta-data",
        "file:///etc/passwd",
        "",
    ],
)
def test_what_is_not_listed_exactly_is_refused(text: str) -> None:
    allowed = Allowed(urls={"https://idp.example/jwks"}, files=set())
    with pytest.raises(InvalidConfig, match="The URL cannot be accessed due to restrictions") as caught:
        parse_location(text, SETTING, allowed)
    assert "org.apache.kafka.sasl.oauthbearer.allowed.urls" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "ldap://idp.example/jwks",
        "jar:file:/etc/x!/y",
        "idp.example/jwks",
        "https:///jwks",
        "https://user:secret@idp.example/jwks",
        "https://idp.example:99999/jwks",
        "https://[::1/jwks",
        "https://idp.example/a b",
        "https://idp.example/a\r\nHost: evil",
        "https://idp.example/" + "a" * 2000,
        "file://server/share",
        "file:relative",
    ],
)
def test_malformed_addresses_are_refused_even_where_everything_is_allowed(text: str) -> None:
    with pytest.raises(InvalidConfig, match=SETTING):
        parse_location(text, SETTING, EVERYTHING)


def test_files() -> None:
    assert check_file("/etc/assertion.jwt", "x", Allowed(files={"/etc/assertion.jwt"})) == "/etc/assertion.jwt"
    with pytest.raises(InvalidConfig, match="The file cannot be accessed due to restrictions"):
        check_file("/etc/../etc/passwd", "x", Allowed(files={"/etc/passwd"}))
    assert check_file("/any", "x", EVERYTHING) == "/any"
