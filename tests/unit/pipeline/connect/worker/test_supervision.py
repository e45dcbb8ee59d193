"""Which tasks work, and when a failed one is tried again."""

from __future__ import annotations

from millbeck.pipeline.connect.tasks.work import FailureKind, ShareFailure
from millbeck.pipeline.connect.worker.supervision import ALL, Condition, Supervision

OUTAGE = ShareFailure(kind=FailureKind.RETRIABLE, message="the target is down")
WRONG = ShareFailure(kind=FailureKind.FATAL, message="no such table")


def _placed(found: Supervision, keys: list[str], now_s: float = 0.0) -> list[tuple[int, str, int]]:
    shares = [((key,), key) for key in keys]
    return [(each.task, each.share, each.attempt) for each in found.place(shares, now_s)]


def test_shares_go_to_tasks_in_their_order() -> None:
    assert _placed(Supervision(3), ["a", "b"]) == [(0, "a", 1), (1, "b", 1)]
    assert _placed(Supervision(1), ["a", "b"]) == [(0, "a", 1)]


def test_what_a_failed_share_reads_rests_and_others_go_on() -> None:
    found = Supervision(2)
    state = found.failed(1, ("b",), OUTAGE, 10.0)
    assert state.condition is Condition.WAITING
    assert found.excluded(10.5) == {"b"}
    assert found.may_plan(10.5)
    assert _placed(found, ["a", "b", "c"], 10.5) == [(0, "a", 1)]
    assert found.next_attempt_s() == 11.0


def test_the_next_attempt_is_of_the_same_task() -> None:
    found = Supervision(2)
    found.failed(1, ("b",), OUTAGE, 10.0)
    assert found.excluded(11.0) == set()
    assert _placed(found, ["b", "a"], 11.0) == [(0, "a", 1), (1, "b", 2)]
    found.succeeded(1)
    assert found.next_attempt_s() is None


def test_waits_grow_to_their_bound_and_begin_anew_after_a_success() -> None:
    found = Supervision(1, delay_max_s=5.0)
    waits = [found.failed(0, (ALL,), OUTAGE, 100.0).retry_s - 100.0 for _ in range(5)]
    assert waits == [1.0, 2.0, 4.0, 5.0, 5.0]
    found.succeeded(0)
    assert found.failed(0, (ALL,), OUTAGE, 100.0).retry_s == 101.0


def test_what_trying_cannot_mend_waits_for_a_restart() -> None:
    found = Supervision(2)
    assert found.failed(0, ("a",), WRONG, 0.0).condition is Condition.FAILED
    assert found.next_attempt_s() is None
    assert _placed(found, ["a", "b"], 1e9) == [(1, "b", 1)]
    found.restart(0)
    assert _placed(found, ["a", "b"], 1e9) == [(0, "a", 1), (1, "b", 1)]


def test_without_retries_every_failure_is_final() -> None:
    assert Supervision(1, retries=False).failed(0, ("a",), OUTAGE, 0.0).condition is Condition.FAILED


def test_a_failing_share_without_a_key_holds_the_connector() -> None:
    found = Supervision(2)
    found.failed(0, (ALL,), OUTAGE, 0.0)
    assert not found.may_plan(0.5)
    assert found.may_plan(1.0)


def test_nothing_is_planned_when_no_task_may_work() -> None:
    found = Supervision(1)
    found.failed(0, ("a",), WRONG, 0.0)
    assert not found.may_plan(1e9)
