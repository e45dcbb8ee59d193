"""When keys are fetched: the schedule, failures, and tokens with unknown keys."""

from __future__ import annotations

from millbeck.security.oauth.key_refresh import UNKNOWN_AGAIN_MS, UNKNOWN_MAX, KeyRefresh
from millbeck.security.oauth.keys import KeySet

KEYS = KeySet(())
HOUR_MS = 3_600_000


def refresh() -> KeyRefresh:
    return KeyRefresh(refresh_ms=HOUR_MS, backoff_ms=100, backoff_ms_max=10_000)


def test_keys_are_fetched_at_once_and_then_regularly() -> None:
    machine = refresh()
    assert machine.due_ms == 0
    machine.fetched(KEYS, 500)
    assert machine.due_ms == HOUR_MS + 500


def test_failures_are_retried_after_longer_and_longer_waits() -> None:
    machine = refresh()
    waits = []
    for _ in range(9):
        machine.failed(0)
        waits.append(machine.due_ms)
    assert waits == [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]
    assert machine.failures_total == 9


def test_keys_stay_when_they_cannot_be_fetched_again() -> None:
    machine = refresh()
    machine.fetched(KEYS, 0)
    machine.failed(HOUR_MS)
    assert machine.keys is KEYS
    assert machine.fetched_ms == 0
    machine.fetched(KEYS, HOUR_MS + 100)
    assert (machine.failures, machine.failures_total) == (0, 1)


def test_an_unknown_key_is_worth_one_fetch() -> None:
    machine = refresh()
    machine.fetched(KEYS, 0)
    assert machine.is_worth_a_fetch("new", 20_000)
    assert not machine.is_worth_a_fetch("new", 20_001)
    assert not machine.is_worth_a_fetch("new", 20_000 + UNKNOWN_AGAIN_MS - 1)
    assert machine.is_worth_a_fetch("new", 20_000 + UNKNOWN_AGAIN_MS)


def test_inventions_do_not_lead_to_a_fetch_each() -> None:
    machine = refresh()
    machine.fetched(KEYS, 0)
    fetches = sum(machine.is_worth_a_fetch(f"invented {index}", index) for index in range(30_000))
    assert fetches == 3, "one in ten seconds at most"
    assert len(machine._unknown) <= UNKNOWN_MAX


def test_what_was_looked_for_is_remembered_within_limits() -> None:
    machine = refresh()
    machine.fetched(KEYS, 0)
    for index in range(UNKNOWN_MAX + 1):
        assert machine.is_worth_a_fetch(f"key {index}", index * 10_000)
    assert len(machine._unknown) == UNKNOWN_MAX


def test_before_the_first_keys_a_token_waits_for_them_and_does_not_hurry_retries() -> None:
    machine = refresh()
    assert machine.is_worth_a_fetch("any", 0)
    machine.failed(0)
    assert not machine.is_worth_a_fetch("any", 50)
    assert machine.is_worth_a_fetch("any", 100)
