"""GSSAPI with a library that answers by the script: the order of messages on both sides, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.kerberos import KerberosFailed, KerberosLogin
from millbeck.security.kerberos_names import KerberosNames
from millbeck.security.principal import Principal
from millbeck.security.sasl.exchange import CannotLogIn, Challenge, ClientWork, Completed, InvalidToken, Work
from millbeck.security.sasl.gssapi import GssapiClient, GssapiServer
from millbeck.security.sasl.jaas import parse_jaas
from millbeck.security.sasl.kerberos_settings import acceptor_of, login_of

NAMES = KerberosNames(("RULE:[1:$1](.*)", "DEFAULT"), "REALM")


class Context:
    """A side that is complete after ``count`` steps, the last one with a token or without one (``is_silent``)."""

    def __init__(self, client: str = "alice@REALM", *, count: int = 2, is_silent: bool = False) -> None:
        self.client = client
        self.is_complete = False
        self.steps: list[bytes] = []
        self._count = count
        self._is_silent = is_silent

    def step(self, token: bytes) -> bytes:
        self.steps.append(token)
        if token == b"forged":
            raise KerberosFailed("Decrypt integrity check failed")
        self.is_complete = len(self.steps) == self._count
        return b"" if self.is_complete and self._is_silent else b"token-%d" % len(self.steps)

    def wrap(self, message: bytes) -> bytes:
        return b"[" + message + b"]"

    def unwrap(self, wrapped: bytes) -> bytes:
        if wrapped[:1] != b"[":
            raise KerberosFailed("A token had an invalid signature")
        return wrapped[1:-1]


def server(context: Context | None = None) -> GssapiServer:
    found = Context() if context is None else context
    return GssapiServer(lambda: found, NAMES.short_name)


def answer(exchange: GssapiServer, token: bytes) -> Any:
    work = exchange.step(token)
    assert isinstance(work, Work)
    return work.then(work.job(*work.arguments))


def challenged(exchange: GssapiServer, token: bytes) -> bytes:
    found = answer(exchange, token)
    assert isinstance(found, Challenge)
    return found.token


def logged_in(exchange: GssapiServer, choice: bytes = b"[\x01\0\0\0]") -> Principal:
    assert challenged(exchange, b"one") == b"token-1"
    assert challenged(exchange, b"two") == b"token-2"
    assert challenged(exchange, b"") == b"[\x01\0\0\0]"
    found = answer(exchange, choice)
    assert isinstance(found, Completed)
    return found.principal


def test_a_client_logs_in() -> None:
    exchange = server()
    assert logged_in(exchange) == Principal("User", "alice")
    assert exchange.claimed_user == "alice@REALM"


def test_the_offer_follows_at_once_if_the_server_has_no_last_token() -> None:
    exchange = server(Context(count=1, is_silent=True))
    assert challenged(exchange, b"one") == b"[\x01\0\0\0]"
    assert answer(exchange, b"[\x01\0\0\0alice@REALM]").principal == Principal("User", "alice")


@pytest.mark.parametrize("claimed", [b"admin", b"admin@REALM", b"kafka@broker", b"\xff"])
def test_the_authorization_id_makes_nobody_else(claimed: bytes) -> None:
    assert logged_in(server(), b"[\x01\0\0\0" + claimed + b"]") == Principal("User", "alice")


@pytest.mark.parametrize(
    ("tokens", "reason"),
    [
        ([b""], "an empty token"),
        ([b"forged"], "integrity check failed"),
        ([b"one", b""], "an empty token"),
        ([b"one", b"forged"], "integrity check failed"),
        ([b"one", b"two", b"more"], "expected an empty message"),
        ([b"one", b"two", b"", b"bare"], "invalid signature"),
        ([b"one", b"two", b"", b""], "invalid signature"),
        ([b"one", b"two", b"", b"[\x01]"], "layer"),
        ([b"one", b"two", b"", b"[\x02\0\0\0]"], "layer"),
        ([b"one", b"two", b"", b"[\x03\0\0\0]"], "layer"),
        ([b"one", b"two", b"", b"[\x01\0\0\0]", b"again"], "after the last one"),
    ],
)
def test_wrong_messages_are_refused(tokens: list[bytes], reason: str) -> None:
    exchange = server()
    for token in tokens[:-1]:
        answer(exchange, token)
    with pytest.raises(InvalidToken, match=reason):
        answer(exchange, tokens[-1])


def test_a_context_that_is_never_complete_ends() -> None:
    class Endless(Context):
        def step(self, token: bytes) -> bytes:
            return b"more"

    exchange = server(Endless())
    for _ in range(8):
        answer(exchange, b"x")
    with pytest.raises(InvalidToken, match="after the last one"):
        answer(exchange, b"x")


def test_a_name_without_a_rule_is_nobody() -> None:
    with pytest.raises(InvalidToken, match="no rule applies"):
        logged_in(server(Context("kafka/host@OTHER")))


def test_both_sides_understand_each_other() -> None:
    other, client = server(Context(count=1)), GssapiClient(lambda: Context(is_silent=True))
    step: Any = client.begin()
    principal = None
    for _ in range(8):
        assert isinstance(step, ClientWork)
        found = answer(other, step.then(step.job(*step.arguments)))
        if isinstance(found, Completed):
            principal = found.principal
            assert not client.is_complete
            assert client.step(found.token) is None
            break
        step = client.step(found.token)
    assert principal == Principal("User", "alice")
    assert client.is_complete


def test_a_client_refuses_a_layer_that_it_does_not_have() -> None:
    client = GssapiClient(lambda: Context(count=1))

    def run(work: ClientWork | None) -> bytes:
        assert work is not None
        return work.then(work.job(*work.arguments))

    assert run(client.begin()) == b"token-1"
    with pytest.raises(CannotLogIn, match="security layer"):
        run(client.step(b"[\x06\0\0\0]"))


def test_a_client_without_a_ticket_says_so() -> None:
    def initiate() -> Context:
        raise KerberosFailed("No Kerberos credentials available")

    work = GssapiClient(initiate).begin()
    with pytest.raises(CannotLogIn, match="No Kerberos credentials available"):
        work.then(work.job(*work.arguments))


# JAAS

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


@pytest.mark.parametrize(
    ("options", "login"),
    [
        (
            'useKeyTab=true keyTab="/k" principal="kafka/h@R"',
            KerberosLogin(keytab="/k", principal="kafka/h@R"),
        ),
        ("useTicketCache=true", KerberosLogin()),
        ('useTicketCache=true ticketCache="/c" principal="alice"', KerberosLogin(ticket_cache="/c", principal="alice")),
    ],
)
def test_credentials_of_a_jaas_entry(options: str, login: KerberosLogin) -> None:
    assert login_of(parse_jaas(f"{MODULE} {options};", "jaas"), "jaas") == login


@pytest.mark.parametrize(
    "options",
    ['keyTab="/k"', 'useKeyTab=true keyTab="/k"', 'useKeyTab=true principal="p"', 'keyTab="/k" principal="p"'],
)
def test_an_incomplete_keytab_is_named(options: str) -> None:
    with pytest.raises(InvalidConfig, match="jaas: a keytab needs useKeyTab=true"):
        login_of(parse_jaas(f"{MODULE} {options};", "jaas"), "jaas")


@pytest.mark.parametrize("principal", ["kafka@R", "kafka/@R", "/host@R"])
def test_a_server_needs_a_keytab_and_a_principal_of_its_host(principal: str) -> None:
    for options in ("useTicketCache=true", f'useKeyTab=true keyTab="/k" principal="{principal}"'):
        with pytest.raises(InvalidConfig, match="jaas: GSSAPI needs the keytab of this node"):
            acceptor_of(parse_jaas(f"{MODULE} {options};", "jaas"), "jaas")
