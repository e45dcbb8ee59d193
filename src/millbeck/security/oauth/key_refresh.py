"""The schedule of fetching an identity provider's keys: regularly, after failures, and for an unknown key.

Keys stay in use when they cannot be fetched again: an outage of the provider must not lock out clients with valid
tokens. A token with an unknown key may be forged, or the first one after the provider changed its keys. So an unknown
key causes one fetch, and forged tokens cannot cause fetches continuously.
"""

from __future__ import annotations

from typing import Final

from millbeck.security.oauth.keys import KeySet

UNKNOWN_MAX: Final = 16
UNKNOWN_AGAIN_MS: Final = 60_000
"""The number of unknown keys remembered, and the time for which they cause no further fetch, as in Kafka."""
_DOUBLINGS_MAX: Final = 16


class KeyRefresh:
    def __init__(self, *, refresh_ms: int, backoff_ms: int, backoff_ms_max: int) -> None:
        self.keys: KeySet | None = None
        self.due_ms = 0
        """The time of the next fetch, on the monotonic clock."""
        self.fetched_ms: int | None = None
        self.failures = 0
        """The number of consecutive failures."""
        self.failures_total = 0
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_ms_max = max(backoff_ms, backoff_ms_max)
        self._wanted_ms: int | None = None
        self._unknown: dict[str | None, int] = {}

    def fetched(self, keys: KeySet, now_ms: int) -> None:
        self.keys = keys
        self.fetched_ms = now_ms
        self.failures = 0
        self.due_ms = now_ms + self._refresh_ms

    def failed(self, now_ms: int) -> None:
        """Record a failed fetch; the current keys stay in use."""
        self.failures += 1
        self.failures_total += 1
        delay_ms: int = min(self._backoff_ms << min(self.failures - 1, _DOUBLINGS_MAX), self._backoff_ms_max)
        self.due_ms = now_ms + delay_ms

    def is_worth_a_fetch(self, key_id: str | None, now_ms: int) -> bool:
        """Whether to fetch the keys now because a token's key is unknown. Before the first successful fetch: yes,
        unless a failed fetch is in backoff. After that, False if this key id already caused a fetch in the last
        `UNKNOWN_AGAIN_MS`, or if any unknown key did within the maximum backoff; otherwise the key id is remembered."""
        if self.keys is None:
            # There are no keys yet. After a failure the backoff decides when to try again, not the tokens.
            return self.failures == 0 or now_ms >= self.due_ms
        asked_ms = self._unknown.get(key_id)
        if asked_ms is not None and now_ms - asked_ms < UNKNOWN_AGAIN_MS:
            return False
        if self._wanted_ms is not None and now_ms - self._wanted_ms < self._backoff_ms_max:
            return False
        self._wanted_ms = now_ms
        self._unknown.pop(key_id, None)
        if len(self._unknown) >= UNKNOWN_MAX:
            self._unknown.pop(next(iter(self._unknown)))
        self._unknown[key_id] = now_ms
        return True
