"""PLAIN: Kafka's texts for every way to fail."""

from __future__ import annotations

import pytest

from millbeck.security.principal import Principal
from millbeck.security.sasl.exchange import AuthenticationFailed, Completed, InvalidToken
from millbeck.security.sasl.plain import ListedPasswords, PlainClient, PlainServer

USERS = {"alice": "secret", "Zoë": "pässword", "empty": ""}


def login(token: bytes) -> Completed:
    step = PlainServer(ListedPasswords(USERS)).step(token)
    assert isinstance(step, Completed)
    return step


@pytest.mark.parametrize(("user", "password"), [("alice", "secret"), ("Zoë", "pässword")])
def test_a_client_logs_in(user: str, password: str) -> None:
    assert login(PlainClient(user, password).begin()) == Completed(principal=Principal("User", user))


def test_the_users_own_authorization_id_is_accepted() -> None:
    assert login(b"alice\0alice\0secret").principal.name == "alice"


@pytest.mark.parametrize(
    ("token", "text"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secre", "Authentication failed: Invalid username or password"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_refused_with_kafkas_text(token: bytes, text: str) -> None:
    with pytest.raises(AuthenticationFailed) as failure:
        login(token)
    assert str(failure.value) == text


@pytest.mark.parametrize(
    "token", [b"", b"alice", b"\0alice", b"\0alice\0secret\0", b"\0\0\0\0", b"\0al\xffice\0secret"]
)
def test_malformed(token: bytes) -> None:
    with pytest.raises(InvalidToken):
        login(token)


def test_one_exchange_is_for_one_token() -> None:
    server = PlainServer(ListedPasswords(USERS))
    server.step(b"\0alice\0secret")
    with pytest.raises(InvalidToken):
        server.step(b"\0alice\0secret")
