"""Hostile logins at the state machine itself: nothing is raised, nobody becomes somebody else, and honest ones pass."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from typing import Any

from millbeck.security.oauth.claims import ClaimRules
from millbeck.security.oauth.keys import KeySet, parse_key_set
from millbeck.security.oauth.validation import SignedTokens
from millbeck.security.sasl.authentication import (
    Answer,
    AnswerApiVersions,
    Authentication,
    Close,
    Fail,
    Mechanism,
    Run,
    Session,
)
from millbeck.security.sasl.oauthbearer import OauthServer
from millbeck.security.sasl.plain import ListedPasswords, PlainServer
from millbeck.security.sasl.scram import (
    Credential,
    KnownUser,
    ScramServer,
    StoredCredential,
    decoy_credential,
    user_principal,
)
from millbeck.security.sasl.scram_messages import ScramMechanism, salted_password, scram_keys
from tests.fixtures.identity_provider import AUDIENCE, ISSUER, key_set, token
from tests.fuzz.logins import PASSWORD, USER, HostileLogin

DIALOGUES = 6000
NOW_MS = 1_700_000_000_000
TOKEN = token(USER, NOW_MS)


class Users:
    def __init__(self) -> None:
        self.credentials = {}
        for mechanism in ScramMechanism:
            keys = scram_keys(mechanism, salted_password(mechanism, PASSWORD, b"salt", 4096))
            self.credentials[mechanism] = Credential(
                salt=b"salt", stored_key=keys.stored_key, server_key=keys.server_key, iterations=4096
            )

    @property
    def strongest(self) -> ScramMechanism:
        return ScramMechanism.SHA_512

    def user(self, mechanism: ScramMechanism, name: str) -> KnownUser | None:
        if name != USER:
            return None
        return KnownUser(credential=self.credentials[mechanism], principal=user_principal(name))

    def token(self, mechanism: ScramMechanism, token_id: str) -> KnownUser | None:
        return None

    def decoy(self, mechanism: ScramMechanism, name: str) -> StoredCredential:
        return decoy_credential(mechanism, name, secret=b"secret", like=None)


class Keys:
    known: KeySet | None = parse_key_set(key_set("ec"))

    def fetch_for(self, key_id: str | None) -> Awaitable[None] | None:
        return None


def mechanisms() -> dict[str, Mechanism]:
    users, passwords = Users(), ListedPasswords({USER: PASSWORD})
    rules = ClaimRules(audiences=(AUDIENCE,), issuer=ISSUER)
    validator = SignedTokens(Keys(), rules, lambda: NOW_MS)
    return {
        "PLAIN": Mechanism(begin=lambda: PlainServer(passwords)),
        "SCRAM-SHA-256": Mechanism(begin=lambda: ScramServer(ScramMechanism.SHA_256, users, lambda: "server")),
        "SCRAM-SHA-512": Mechanism(begin=lambda: ScramServer(ScramMechanism.SHA_512, users, lambda: "server")),
        "OAUTHBEARER": Mechanism(begin=lambda: OauthServer(validator)),
    }


def outcome(login: HostileLogin, server: Authentication) -> Session | str:
    """The session, or how the dialogue ended."""
    reply: bytes | None = None
    for _ in range(10):
        frame = login.next_frame(reply)
        if frame is None:
            return "nothing more to send"
        effect: Any = server.receive(frame, 0, NOW_MS)
        assert not isinstance(effect, Run), "no step of these mechanisms is slow"
        if isinstance(effect, Fail | Close):
            return "refused"
        assert isinstance(effect, Answer | AnswerApiVersions)
        if isinstance(effect, Answer):
            if effect.session is not None:
                return effect.session
            reply = getattr(effect.content, "auth_bytes", effect.content if login.is_bare else None)
    return "endless"


def test_hostile_logins_raise_nothing_and_change_nobodys_name() -> None:
    offered = mechanisms()
    ends: dict[str, int] = {}
    for seed in range(DIALOGUES):
        end = outcome(HostileLogin(random.Random(seed), lambda: TOKEN), Authentication(offered))
        if isinstance(end, Session):
            assert end.principal == user_principal(USER), seed
        name = "a session" if isinstance(end, Session) else end
        ends[name] = ends.get(name, 0) + 1
    assert ends["refused"] > DIALOGUES // 2
    assert 0 < ends["a session"] < DIALOGUES // 2, "those that are changed where it does not matter, or too late"


def test_honest_logins_pass() -> None:
    offered = mechanisms()
    for seed in range(100):
        end = outcome(HostileLogin(random.Random(seed), lambda: TOKEN, is_honest=True), Authentication(offered))
        assert isinstance(end, Session), (seed, end)
