"""OAUTHBEARER: the messages, and the exchange on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from millbeck.security.oauth.claims import AcceptedToken, ClaimRules
from millbeck.security.oauth.jwt import TokenRefused, unsecured_token
from millbeck.security.oauth.key_refresh import KeyRefresh
from millbeck.security.oauth.keys import KeySet, parse_key_set
from millbeck.security.oauth.validation import AwaitKeys, SignedTokens, UnsecuredTokens
from millbeck.security.principal import Principal
from millbeck.security.sasl.exchange import AuthenticationFailed, Challenge, Completed, InvalidToken, Wait
from millbeck.security.sasl.oauthbearer import OauthClient, OauthServer, check_extensions, parse_client_first
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, key_set, token

NOW_MS = 1_700_000_000_000
RULES = ClaimRules(audiences=(AUDIENCE,), issuer=ISSUER)


class Known:
    """A validator with two tokens."""

    def check(self, text: str) -> AcceptedToken:
        if text != "good":
            raise TokenRefused(f"{text} is not known")
        return AcceptedToken(subject="alice", expires_at_ms=NOW_MS, scope=())


def test_a_token_and_extensions() -> None:
    first = parse_client_first(OauthClient("a.b-c_", {"traceId": "1 2", "logicalCluster": "x"}).begin())
    assert (first.token, first.authorization_id) == ("a.b-c_", "")
    assert first.extensions == {"traceId": "1 2", "logicalCluster": "x"}


def test_the_scheme_is_compared_without_case_and_the_authorization_id_unescaped() -> None:
    first = parse_client_first(b"n,a=a=2Cb=3Dc,\x01auth=bEARER   tok\x01\x01")
    assert (first.token, first.authorization_id) == ("tok", "a,b=c")


MALFORMED = {
    "empty": b"",
    "abort without a refusal": b"\x01",
    "no header": b"\x01auth=Bearer tok\x01\x01",
    "channel binding": b"p=tls-unique,,\x01auth=Bearer tok\x01\x01",
    "other header": b"y,,\x01auth=Bearer tok\x01\x01",
    "empty authorization id": b"n,a=,\x01auth=Bearer tok\x01\x01",
    "authorization id with an escape cut": b"n,a=a=2,\x01auth=Bearer tok\x01\x01",
    "no end": b"n,,\x01auth=Bearer tok\x01",
    "something behind the end": b"n,,\x01auth=Bearer tok\x01\x01x",
    "no token": b"n,,\x01host=a\x01\x01",
    "empty token": b"n,,\x01auth=Bearer \x01\x01",
    "other scheme": b"n,,\x01auth=Basic tok\x01\x01",
    "token with a space": b"n,,\x01auth=Bearer to k\x01\x01",
    "token with other characters": b"n,,\x01auth=Bearer tok+/\x01\x01",
    "two tokens": b"n,,\x01auth=Bearer tok\x01auth=Bearer other\x01\x01",
    "extension without value": b"n,,\x01auth=Bearer tok\x01name\x01\x01",
    "extension with an empty value": b"n,,\x01auth=Bearer tok\x01name=\x01\x01",
    "extension with a digit": b"n,,\x01auth=Bearer tok\x01name1=a\x01\x01",
    "extension with control characters": b"n,,\x01auth=Bearer tok\x01name=a\x02\x01\x01",
    "extension twice": b"n,,\x01auth=Bearer tok\x01name=a\x01name=b\x01\x01",
    "not UTF-8": b"n,,\x01auth=Bearer tok\xff\x01\x01",
}


@pytest.mark.parametrize("message", MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_message_is_refused(message: bytes) -> None:
    with pytest.raises(InvalidToken):
        OauthServer(Known()).step(message)


def test_a_message_of_half_a_megabyte_is_no_work() -> None:
    with pytest.raises(InvalidToken, match="more than 100 values"):
        parse_client_first(b"n,," + b"\x01a=b" * 100_000 + b"\x01\x01")
    with pytest.raises(InvalidToken):
        parse_client_first(b"n,a=" + b"=2" * 250_000 + b",\x01auth=Bearer tok\x01\x01")


@pytest.mark.parametrize("name", ["auth", "", "a1", "a=b"])
def test_extensions_that_a_message_cannot_carry(name: str) -> None:
    with pytest.raises(ValueError):
        check_extensions({name: "value"})
    with pytest.raises(ValueError):
        check_extensions({"name": "\x01"})


def test_a_login() -> None:
    client, server = OauthClient("good", {}), OauthServer(Known())
    done = server.step(client.begin())
    assert done == Completed(principal=Principal("User", "alice"), expires_at_ms=NOW_MS)
    assert isinstance(done, Completed)
    assert client.step(done.token) is None
    assert client.is_complete
    with pytest.raises(InvalidToken):
        server.step(client.begin())


def test_a_refusal_is_told_and_then_fails() -> None:
    client, server = OauthClient("bad", {}), OauthServer(Known())
    told = server.step(client.begin())
    assert told == Challenge(b'{"status":"invalid_token"}')
    assert isinstance(told, Challenge)
    answer = client.step(told.token)
    assert answer == b"\x01"
    assert not client.is_complete
    with pytest.raises(AuthenticationFailed) as caught:
        server.step(answer)
    assert str(caught.value) == '{"status":"invalid_token"}', "the client does not hear why"
    assert "bad is not known" in caught.value.reason


def test_after_a_refusal_there_is_no_second_try() -> None:
    server = OauthServer(Known())
    server.step(OauthClient("bad", {}).begin())
    with pytest.raises(InvalidToken):
        server.step(OauthClient("good", {}).begin())


def test_the_authorization_id_must_be_the_tokens_owner() -> None:
    assert isinstance(OauthServer(Known()).step(b"n,a=alice,\x01auth=Bearer good\x01\x01"), Completed)
    with pytest.raises(AuthenticationFailed, match="different from the token's principal name"):
        OauthServer(Known()).step(b"n,a=admin,\x01auth=Bearer good\x01\x01")


# validators


class Keys:
    """Keys that come with the next fetch."""

    def __init__(self, known: KeySet | None, coming: KeySet | None) -> None:
        self.known = known
        self.coming = coming
        self.fetches: list[str | None] = []
        self.refresh = KeyRefresh(refresh_ms=1, backoff_ms=1, backoff_ms_max=1)

    def fetch_for(self, key_id: str | None) -> Awaitable[None] | None:
        self.fetches.append(key_id)
        return self._fetch() if len(self.fetches) == 1 else None

    async def _fetch(self) -> None:
        self.known = self.coming


def signed(keys: Keys) -> SignedTokens:
    return SignedTokens(keys, RULES, lambda: NOW_MS)


def finish(waiting: AwaitKeys) -> AcceptedToken:
    async def fetch() -> None:
        await waiting.fetch

    asyncio.run(fetch())
    return waiting.then()


def test_a_known_key_decides_at_once() -> None:
    keys = Keys(parse_key_set(key_set("ec")), None)
    accepted = signed(keys).check(token("alice", NOW_MS))
    assert isinstance(accepted, AcceptedToken)
    assert accepted.subject == "alice"
    assert not keys.fetches


def test_an_unknown_key_waits_for_one_fetch() -> None:
    keys = Keys(parse_key_set(key_set("rsa")), parse_key_set(key_set("ec")))
    waiting = signed(keys).check(token("alice", NOW_MS))
    assert isinstance(waiting, AwaitKeys)
    assert finish(waiting).subject == "alice"
    assert keys.fetches == ["ec"]


def test_a_key_that_is_not_there_after_a_fetch_is_refused() -> None:
    keys = Keys(parse_key_set(key_set("rsa")), parse_key_set(key_set("rsa")))
    waiting = signed(keys).check(token("alice", NOW_MS))
    assert isinstance(waiting, AwaitKeys)
    with pytest.raises(TokenRefused, match="no key 'ec'"):
        finish(waiting)
    assert len(keys.fetches) == 1
    with pytest.raises(TokenRefused, match="no key 'ec'"):
        signed(keys).check(token("alice", NOW_MS))


def test_without_any_keys_nobody_gets_in() -> None:
    keys = Keys(None, None)
    waiting = signed(keys).check(token("alice", NOW_MS))
    assert isinstance(waiting, AwaitKeys)
    with pytest.raises(TokenRefused, match="could not be fetched"):
        finish(waiting)


def test_an_algorithm_that_is_not_accepted_is_not_worth_a_fetch() -> None:
    keys = Keys(None, None)
    with pytest.raises(TokenRefused, match="none"):
        signed(keys).check(unsecured_token({"sub": "alice"}))
    assert not keys.fetches


def test_the_server_waits_for_keys_and_then_answers() -> None:
    keys = Keys(None, parse_key_set(key_set("ec")))
    for subject, expected in (("alice", Completed), ("", Challenge)):
        keys.fetches.clear()
        keys.known = None
        waiting = OauthServer(signed(keys)).step(OauthClient(token(subject, NOW_MS), {}).begin())
        assert isinstance(waiting, Wait)

        async def wait(until: Awaitable[None] = waiting.until) -> None:
            await until

        asyncio.run(wait())
        assert isinstance(waiting.then(None), expected)


def test_unsecured_tokens() -> None:
    validator = UnsecuredTokens(ClaimRules(requires_issue_time=False, clock_skew_ms=0), lambda: NOW_MS)
    accepted = validator.check(unsecured_token({"sub": "alice", "exp": NOW_MS // 1000 + 1}))
    assert accepted.subject == "alice"
    with pytest.raises(TokenRefused, match="expired"):
        validator.check(unsecured_token({"sub": "alice", "exp": NOW_MS // 1000}))
    with pytest.raises(TokenRefused, match=r"jwks\.endpoint\.url"):
        validator.check(token("alice", NOW_MS))
    with pytest.raises(TokenRefused, match=r"jwks\.endpoint\.url"):
        validator.check(unsecured_token({"sub": "alice", "exp": NOW_MS}) + "c2ln")
