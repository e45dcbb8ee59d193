"""A client's token: its expiration and subject, and the time of the next refresh."""

from __future__ import annotations

from dataclasses import dataclass, field

from millbeck.security.oauth.claims import time_claim_ms
from millbeck.security.oauth.jwt import TokenRefused, json_object, parse_token


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientToken:
    text: str = field(repr=False)
    subject: str
    issued_ms: int | None
    expires_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshWindow:
    """The settings ``sasl.login.refresh.*``."""

    factor: float = 0.8
    jitter: float = 0.05
    period_s_min: int = 60
    buffer_s: int = 300

    def refresh_ms(self, token: ClientToken, now_ms: int, chance: float) -> int:
        """The time of the next refresh; ``chance`` is a random number in [0, 1), so that clients do not refresh at
        the same time. A token whose lifetime is shorter than the sum of the margins is still refreshed before it
        expires."""
        part = self.factor + self.jitter * chance
        if now_ms + 1000 * (self.period_s_min + self.buffer_s) > token.expires_ms:
            return now_ms + int((token.expires_ms - now_ms) * part)
        started_ms = now_ms if token.issued_ms is None else token.issued_ms
        proposed_ms = started_ms + int((token.expires_ms - started_ms) * part)
        return max(min(proposed_ms, token.expires_ms - 1000 * self.buffer_s), now_ms + 1000 * self.period_s_min)


def read_token(text: str, subject_claim: str) -> ClientToken:
    """Parse a token without verifying the signature, which brokers do. Raises `TokenRefused`."""
    claims = json_object(parse_token(text).claims, "claims")
    subject, expires_ms = claims.get(subject_claim), time_claim_ms(claims, "exp")
    if not isinstance(subject, str) or not subject:
        raise TokenRefused(f"the token has no claim {subject_claim}, from which brokers take the principal's name")
    if expires_ms is None:
        raise TokenRefused("the token has no claim exp: it must expire")
    return ClientToken(text=text, subject=subject, issued_ms=time_claim_ms(claims, "iat"), expires_ms=expires_ms)
