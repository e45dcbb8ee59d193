"""What a client reads in its token, and when it gets the next one."""

from __future__ import annotations

import pytest

from millbeck.security.oauth.client_token import ClientToken, RefreshWindow, read_token
from millbeck.security.oauth.jwt import TokenRefused, unsecured_token
from tests.fixtures.identity_provider import token

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def of_lifetime(lifetime_ms: int, issued_ms: int | None = NOW_MS) -> ClientToken:
    return ClientToken(text="", subject="a", issued_ms=issued_ms, expires_ms=NOW_MS + lifetime_ms)


CASES = {
    "a day": (24 * HOUR_MS, 0.0, int(0.8 * 24 * HOUR_MS)),
    "a day, at the end of the jitter": (24 * HOUR_MS, 0.999, int(0.85 * 24 * HOUR_MS)),
    "the buffer before the end": (1200 * 1000, 0.999, 900 * 1000),
    "shorter than the margins": (300 * 1000, 0.0, 240 * 1000),
    "seconds": (10 * 1000, 0.0, 8 * 1000),
}


@pytest.mark.parametrize(("lifetime_ms", "chance", "after_ms"), CASES.values(), ids=CASES.keys())
def test_when_the_next_token_is_fetched(lifetime_ms: int, chance: float, after_ms: int) -> None:
    found = RefreshWindow().refresh_ms(of_lifetime(lifetime_ms), NOW_MS, chance) - NOW_MS
    assert abs(found - after_ms) <= lifetime_ms // 1000


def test_an_old_token_is_not_fetched_again_within_the_shortest_time() -> None:
    old = ClientToken(text="", subject="a", issued_ms=NOW_MS - 9 * HOUR_MS, expires_ms=NOW_MS + HOUR_MS)
    assert RefreshWindow().refresh_ms(old, NOW_MS, 0) == NOW_MS + 60_000


def test_a_token_without_a_time_of_issue_counts_from_now() -> None:
    assert RefreshWindow().refresh_ms(of_lifetime(10 * HOUR_MS, None), NOW_MS, 0) == NOW_MS + 8 * HOUR_MS


def test_a_token_is_read_without_its_signature() -> None:
    found = read_token(token("alice", NOW_MS, key="other"), "sub")
    assert (found.subject, found.issued_ms, found.expires_ms) == ("alice", NOW_MS, NOW_MS + 300_000)
    assert read_token(token("alice", NOW_MS, azp="service"), "azp").subject == "service"


@pytest.mark.parametrize(
    "text",
    ["opaque", unsecured_token({"sub": "a"}), unsecured_token({"exp": 1}), unsecured_token({"sub": 1, "exp": 1})],
)
def test_a_token_that_a_client_cannot_use(text: str) -> None:
    with pytest.raises(TokenRefused):
        read_token(text, "sub")
    assert "a.b" not in repr(ClientToken(text="a.b", subject="", issued_ms=0, expires_ms=0))
