"""Checks of a token's claims: subject, issuer, audience, and validity period."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from millbeck.security.oauth.jwt import TokenRefused, shown

TIME_MAX: Final = 1 << 40
"""The maximum time in seconds since 1970: far in the future, but small enough for milliseconds in 64 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """The claims that a broker requires, as configured."""

    audiences: tuple[str, ...] = ()
    """The accepted audiences; if empty, only tokens without an audience are accepted."""
    issuer: str | None = None
    """The expected issuer; None accepts any."""
    clock_skew_ms: int = 30_000
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    requires_issue_time: bool = True
    required_scope: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedToken:
    subject: str
    """The name of the client's principal."""
    expires_at_ms: int
    scope: tuple[str, ...]


def check_claims(claims: Mapping[str, Any], rules: ClaimRules, now_ms: int) -> AcceptedToken:
    """Check the claims; raises `TokenRefused` with the name of the invalid claim."""
    expires_ms = time_claim_ms(claims, "exp")
    if expires_ms is None:
        raise TokenRefused("the claim exp is missing: a token must expire")
    if now_ms - rules.clock_skew_ms >= expires_ms:
        raise TokenRefused(f"the token has expired {_ago(now_ms - expires_ms)}")
    issued_ms = time_claim_ms(claims, "iat")
    if issued_ms is None and rules.requires_issue_time:
        raise TokenRefused("the claim iat is missing")
    if issued_ms is not None and issued_ms > expires_ms:
        raise TokenRefused("the token expires before it was issued")
    not_before_ms = time_claim_ms(claims, "nbf")
    if not_before_ms is not None:
        if now_ms + rules.clock_skew_ms < not_before_ms:
            raise TokenRefused("the token is not valid yet (nbf): compare the clocks of broker and identity provider")
        if not_before_ms > expires_ms:
            raise TokenRefused("the token expires before it becomes valid")
    _check_issuer(claims, rules)
    _check_audience(claims, rules)
    scope = _scope(claims, rules)
    return AcceptedToken(subject=_subject(claims, rules.subject_claim), expires_at_ms=expires_ms, scope=scope)


def _check_issuer(claims: Mapping[str, Any], rules: ClaimRules) -> None:
    if rules.issuer is not None and claims.get("iss") != rules.issuer:
        raise TokenRefused(f"the issuer is {shown(claims.get('iss'))}, not sasl.oauthbearer.expected.issuer")


def _check_audience(claims: Mapping[str, Any], rules: ClaimRules) -> None:
    given = claims.get("aud")
    if not rules.audiences:
        if given is not None:
            # As in Kafka: without a configured audience, a token for a particular audience is refused.
            raise TokenRefused(f"the token's audience is {shown(given)}: set sasl.oauthbearer.expected.audience")
        return
    audiences = [given] if isinstance(given, str) else given
    if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
        raise TokenRefused("the claim aud is missing, or neither a string nor a list of strings")
    if not set(audiences) & set(rules.audiences):
        raise TokenRefused(
            f"the token's audience is {shown(audiences)}, which is not in sasl.oauthbearer.expected.audience"
        )


def _scope(claims: Mapping[str, Any], rules: ClaimRules) -> tuple[str, ...]:
    given = claims.get(rules.scope_claim)
    scopes = [] if given is None else given.split() if isinstance(given, str) else given
    if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
        raise TokenRefused(f"the claim {rules.scope_claim} is neither a string nor a list of strings")
    missing = [each for each in rules.required_scope if each not in scopes]
    if missing:
        raise TokenRefused(f"the token has no scope {shown(missing[0])}")
    return tuple(scopes)


def _subject(claims: Mapping[str, Any], name: str) -> str:
    subject = claims.get(name)
    if not isinstance(subject, str) or not subject or subject.strip() != subject:
        raise TokenRefused(f"the claim {name}, which must contain the principal's name, is {shown(subject)}")
    return subject


def time_claim_ms(claims: Mapping[str, Any], name: str) -> int | None:
    """A time claim in milliseconds; None if it is missing. Raises `TokenRefused`."""
    seconds = claims.get(name)
    if seconds is None:
        return None
    is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not is_number or (isinstance(seconds, float) and not math.isfinite(seconds)):
        raise TokenRefused(f"the claim {name} is not a time in seconds")
    if not 0 <= seconds <= TIME_MAX:
        raise TokenRefused(f"the claim {name} is out of range")
    return int(seconds * 1000)


def _ago(elapsed_ms: int) -> str:
    return f"{max(elapsed_ms, 0) // 1000} seconds ago"
