"""Sessions by tokens begin, end and are renewed as they should; and the run is not blind: each mutant is caught."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.security.oauth import validation
from millbeck.security.oauth.claims import AcceptedToken, check_claims
from millbeck.security.oauth.jwt import json_object, parse_token
from millbeck.security.oauth.key_refresh import KeyRefresh
from millbeck.security.oauth.keys import KeySet
from millbeck.security.principal import Principal
from millbeck.security.sasl import authentication
from millbeck.security.sasl.authentication import Authentication, Session
from millbeck.security.sasl.exchange import Challenge, Completed
from millbeck.security.sasl.oauthbearer import OauthServer
from millbeck.simulation.runs.sessions_run import SESSIONS, SessionsRun


@pytest.fixture(autouse=True)
def _quiet() -> Any:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_nothing_is_served_without_a_session(number: int) -> None:
    anomalies = SessionsRun(number).run()
    assert not anomalies, f"seed {number}\n" + "\n".join(map(str, anomalies[:10]))


def _expired_sessions_are_served(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Session, "is_expired", lambda self, now_ms: False)


def _sessions_do_not_end_with_their_token(patch: pytest.MonkeyPatch) -> None:
    original = check_claims

    def check(*arguments: Any) -> AcceptedToken:
        found = original(*arguments)
        return AcceptedToken(subject=found.subject, expires_at_ms=found.expires_at_ms + 3_600_000, scope=())

    def told(self: Authentication, completed: Any, now_ms: int, wall_ms: int) -> Session:
        session = complete(self, completed, now_ms, wall_ms)
        # The client is told the right time, and the broker does not keep to it.
        assert session.expires_ms is not None
        object.__setattr__(session, "lifetime_ms", session.lifetime_ms - 3_600_000)
        return session

    complete = Authentication._complete
    patch.setattr(validation, "check_claims", check)
    patch.setattr(Authentication, "_complete", told)


def _expired_tokens_are_accepted(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        validation, "check_claims", lambda claims, rules, now_ms: check_claims(claims, rules, now_ms - 60_000)
    )


def _the_principal_changes_at_reauthentication(patch: pytest.MonkeyPatch) -> None:
    original = Authentication._complete

    def complete(self: Authentication, completed: Any, now_ms: int, wall_ms: int) -> Session:
        self._renewed = None
        return original(self, completed, now_ms, wall_ms)

    patch.setattr(Authentication, "_complete", complete)


def _signatures_are_not_verified(patch: pytest.MonkeyPatch) -> None:
    def claims(token: Any, key: Any) -> Any:
        return json_object(token.claims, "claims")

    patch.setattr(validation, "verify_signature", claims)


def _withdrawn_keys_stay(patch: pytest.MonkeyPatch) -> None:
    original = KeyRefresh.fetched

    def fetched(self: KeyRefresh, keys: KeySet, now_ms: int) -> None:
        before = () if self.keys is None else self.keys.keys
        known = {key.key_id for key in keys.keys}
        original(self, KeySet((*keys.keys, *(key for key in before if key.key_id not in known))), now_ms)

    patch.setattr(KeyRefresh, "fetched", fetched)


def _issuers_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    from millbeck.security.oauth import claims

    patch.setattr(claims, "_check_issuer", lambda *arguments: None)


def _audiences_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    from millbeck.security.oauth import claims

    patch.setattr(claims, "_check_audience", lambda *arguments: None)


def _requests_are_served_before_the_login(patch: pytest.MonkeyPatch) -> None:
    original = Authentication._before_exchange

    def before(self: Authentication, frame: bytes, now_ms: int, wall_ms: int) -> Any:
        effect = original(self, frame, now_ms, wall_ms)
        return authentication.AnswerApiVersions() if isinstance(effect, authentication.Close) else effect

    patch.setattr(Authentication, "_before_exchange", before)


def _a_refused_token_is_a_login(patch: pytest.MonkeyPatch) -> None:
    original = OauthServer._answer

    def answer(self: OauthServer, first: Any, decide: Any) -> Any:
        step = original(self, first, decide)
        if isinstance(step, Challenge):
            subject = json_object(parse_token(first.token).claims, "claims")["sub"]
            return Completed(principal=Principal("User", subject), expires_at_ms=1 << 50)
        return step

    patch.setattr(OauthServer, "_answer", answer)


MUTANTS = [
    _expired_sessions_are_served,
    _sessions_do_not_end_with_their_token,
    _expired_tokens_are_accepted,
    _the_principal_changes_at_reauthentication,
    _signatures_are_not_verified,
    _withdrawn_keys_stay,
    _issuers_are_not_compared,
    _audiences_are_not_compared,
    _requests_are_served_before_the_login,
    _a_refused_token_is_a_login,
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__.strip("_"))
def test_a_mutant_is_caught(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    for number in range(1, 11):
        if any(anomaly.kind == SESSIONS for anomaly in SessionsRun(number).run()):
            return
    raise AssertionError("ten seeds did not notice")
