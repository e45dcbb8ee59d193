"""The first of equal events is written at once, the others as a number; and the memory for that is bounded."""

from __future__ import annotations

import random
from collections import Counter

from millbeck.security.audit.events import AuditEvent, AuditKind, event_of
from millbeck.security.audit.folding import OTHERS, Folding

WINDOW_MS = 60_000


def denied(name: str = "orders") -> AuditEvent:
    return event_of(AuditKind.DENIED, principal="User:bob", resource=f"TOPIC:{name}")


def test_repeats_are_counted_until_the_end_of_their_window() -> None:
    folding = Folding(WINDOW_MS)
    assert folding.record(denied(), 0)
    assert not any(folding.record(denied(), at) for at in range(1, 1205))
    assert folding.record(denied("other"), 5)
    assert folding.next_end_ms() == WINDOW_MS
    assert folding.expire(WINDOW_MS - 1) == []
    (found,) = folding.expire(WINDOW_MS)
    assert (found.event, found.count, found.seconds) == (denied(), 1204, 60.0)


def test_after_a_quiet_window_an_event_is_written_at_once_again() -> None:
    folding = Folding(WINDOW_MS)
    folding.record(denied(), 0)
    folding.record(denied(), 10)
    assert len(folding.expire(WINDOW_MS)) == 1
    assert not folding.record(denied(), WINDOW_MS + 1), "it still repeats"
    assert [each.count for each in folding.expire(2 * WINDOW_MS)] == [1]
    assert folding.expire(3 * WINDOW_MS) == []
    assert folding.next_end_ms() is None
    assert folding.record(denied(), 3 * WINDOW_MS + 1)


def test_details_do_not_make_events_different_and_changes_are_never_folded() -> None:
    folding = Folding(WINDOW_MS)
    assert folding.record(event_of(AuditKind.THROTTLED, {"wait_ms": 1}, principal="User:a"), 0)
    assert not folding.record(event_of(AuditKind.THROTTLED, {"wait_ms": 2}, principal="User:a"), 0)
    for _ in range(3):
        assert folding.record(event_of(AuditKind.CHANGED, {"before": 1, "after": 2}, name="x"), 0)


def test_too_many_different_events_are_counted_together_by_kind() -> None:
    folding = Folding(WINDOW_MS, subjects_max=10)
    written = sum(folding.record(denied(str(number)), number) for number in range(1000))
    assert written == 10
    found = {each.event: each.count for each in folding.expire(WINDOW_MS + 1000)}
    assert found == {AuditEvent(AuditKind.DENIED, OTHERS): 990}


def test_no_event_is_lost_whatever_the_times() -> None:
    for seed in range(50):
        rng = random.Random(seed)
        folding = Folding(1000, subjects_max=5)
        seen: Counter[str] = Counter()
        now_ms = total = 0
        for _ in range(300):
            now_ms += rng.randrange(0, 400)
            seen["repeats"] += sum(each.count for each in folding.expire(now_ms))
            seen["written"] += folding.record(denied(str(rng.randrange(8))), now_ms)
            total += 1
            assert len(folding._windows) <= 5 + len(AuditKind)
            assert len(folding._windows) == len(folding._order)
        seen["repeats"] += sum(each.count for each in folding.flush(now_ms))
        assert seen.total() == total, seed
