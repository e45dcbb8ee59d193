"""Principals and their text."""

from __future__ import annotations

import pytest

from millbeck.security.principal import ANONYMOUS, Principal, parse_principal


def test_anonymous() -> None:
    assert str(ANONYMOUS) == "User:ANONYMOUS"
    assert not ANONYMOUS.is_token


@pytest.mark.parametrize("text", ["User:alice", "User:CN=a:b,O=c", "Group:x"])
def test_text_round_trip(text: str) -> None:
    assert str(parse_principal(text)) == text


def test_only_the_first_colon_divides() -> None:
    assert parse_principal("User:a:b") == Principal("User", "a:b")


@pytest.mark.parametrize("text", ["", "alice", ":alice", "User:", ":"])
def test_text_that_is_no_principal(text: str) -> None:
    with pytest.raises(ValueError, match="type:name"):
        parse_principal(text)
