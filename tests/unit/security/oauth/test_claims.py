"""Claims: each rule, and the last moment at which it still holds."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.security.oauth.claims import ClaimRules, check_claims
from millbeck.security.oauth.jwt import TokenRefused

NOW_MS = 1_700_000_000_000
NOW = NOW_MS // 1000
RULES = ClaimRules(audiences=("kafka", "logs"), issuer="https://idp", clock_skew_ms=30_000)


def claims(**changed: Any) -> dict[str, Any]:
    usual = {"sub": "alice", "iss": "https://idp", "aud": "kafka", "iat": NOW, "exp": NOW + 300}
    return {name: value for name, value in (usual | changed).items() if value is not None}


def test_the_subject_and_the_end_of_a_token() -> None:
    accepted = check_claims(claims(scope="read write"), RULES, NOW_MS)
    assert (accepted.subject, accepted.expires_at_ms) == ("alice", NOW_MS + 300_000)
    assert accepted.scope == ("read", "write")


def test_claims_may_have_other_names() -> None:
    rules = ClaimRules(subject_claim="azp", scope_claim="scp", audiences=("kafka",))
    accepted = check_claims(claims(sub=None, azp="service-7", scp=["a", "b"]), rules, NOW_MS)
    assert (accepted.subject, accepted.scope) == ("service-7", ("a", "b"))


ACCEPTED = {
    "one audience of several": {"aud": ["other", "logs"]},
    "expired within the skew": {"iat": NOW - 100, "exp": NOW - 29},
    "valid from now on": {"nbf": NOW},
    "not yet valid within the skew": {"nbf": NOW + 30},
    "with a part of a second": {"exp": NOW + 0.5},
    "issued in the future, as clocks differ": {"iat": NOW + 10},
    "with claims nobody asked for": {"jti": "1", "groups": ["x"] * 100},
}


@pytest.mark.parametrize("changed", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(changed: dict[str, Any]) -> None:
    assert check_claims(claims(**changed), RULES, NOW_MS).subject == "alice"


REFUSED = {
    "no end": ({"exp": None}, "exp is missing"),
    "expired": ({"exp": NOW - 31, "iat": NOW - 100}, "expired 31 seconds ago"),
    "expired at the end of the skew": ({"exp": NOW - 30, "iat": NOW - 100}, "expired"),
    "end is text": ({"exp": str(NOW + 300)}, "not a time"),
    "end is true": ({"exp": True}, "not a time"),
    "end is infinite": ({"exp": float("inf")}, "not a time"),
    "end is not a number": ({"exp": float("nan")}, "not a time"),
    "end is negative": ({"exp": -1}, "out of range"),
    "end is beyond any calendar": ({"exp": 1 << 70}, "out of range"),
    "end is beyond any float": ({"exp": 10**400}, "out of range"),
    "not issued": ({"iat": None}, "iat is missing"),
    "issued after its end": ({"iat": NOW + 400}, "before it was issued"),
    "issued by text": ({"iat": "now"}, "iat is not a time"),
    "not valid yet": ({"nbf": NOW + 31}, "not valid yet"),
    "valid after its end": ({"nbf": NOW + 20, "exp": NOW + 10}, "before it becomes valid"),
    "other issuer": ({"iss": "https://idp.evil"}, "issuer"),
    "issuer with a slash more": ({"iss": "https://idp/"}, "issuer"),
    "no issuer": ({"iss": None}, "issuer"),
    "issuer in a list": ({"iss": ["https://idp"]}, "issuer"),
    "other audience": ({"aud": "kafka2"}, "which is not in"),
    "no audience": ({"aud": None}, "aud is missing"),
    "audience is a number": ({"aud": 7}, "aud is missing"),
    "audience in an object": ({"aud": {"kafka": 1}}, "aud is missing"),
    "audiences of mixed kinds": ({"aud": ["kafka", 7]}, "aud is missing"),
    "no subject": ({"sub": None}, "sub"),
    "empty subject": ({"sub": ""}, "sub"),
    "blank subject": ({"sub": "  "}, "sub"),
    "subject with spaces around": ({"sub": " alice"}, "sub"),
    "subject is a number": ({"sub": 1000}, "sub"),
    "subject in a list": ({"sub": ["alice"]}, "sub"),
    "scope is a number": ({"scope": 7}, "scope"),
    "scope of mixed kinds": ({"scope": ["a", None]}, "scope"),
}


@pytest.mark.parametrize(("changed", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(TokenRefused, match=reason):
        check_claims(claims(**changed), RULES, NOW_MS)


def test_a_token_for_somebody_is_refused_where_no_audience_is_configured() -> None:
    rules = ClaimRules(issuer="https://idp")
    with pytest.raises(TokenRefused, match=r"set sasl.oauthbearer.expected.audience"):
        check_claims(claims(), rules, NOW_MS)
    assert check_claims(claims(aud=None), rules, NOW_MS).subject == "alice"


def test_any_issuer_where_none_is_configured() -> None:
    assert check_claims(claims(iss="https://other"), ClaimRules(audiences=("kafka",)), NOW_MS).subject == "alice"


def test_a_scope_that_is_required() -> None:
    rules = ClaimRules(audiences=("kafka",), required_scope=("write",))
    assert check_claims(claims(scope="read write"), rules, NOW_MS).subject == "alice"
    with pytest.raises(TokenRefused, match="no scope"):
        check_claims(claims(scope="read"), rules, NOW_MS)
    with pytest.raises(TokenRefused, match="no scope"):
        check_claims(claims(), rules, NOW_MS)
