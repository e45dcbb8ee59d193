"""Waits grow, end, and begin anew after a good run."""

from __future__ import annotations

from millbeck.pipeline.running.backoff import GOOD_RUN_SECONDS, LONGEST_SECONDS, RestartBackoff


def test_waits_double_up_to_a_limit() -> None:
    backoff = RestartBackoff()
    waits = [backoff.failed(0) for _ in range(100)]
    assert waits[:4] == [1, 2, 4, 8]
    assert waits[-1] == LONGEST_SECONDS


def test_so_many_failures_in_a_row_are_too_many() -> None:
    backoff = RestartBackoff(attempts_max=2)
    assert [backoff.failed(0) is None for _ in range(3)] == [False, False, True]
    assert RestartBackoff(attempts_max=0).failed(0) is None


def test_a_good_run_wipes_the_slate() -> None:
    backoff = RestartBackoff(attempts_max=2)
    backoff.failed(0)
    backoff.failed(0)
    assert backoff.failed(GOOD_RUN_SECONDS) == 1


def test_progress_wipes_it_too() -> None:
    backoff = RestartBackoff(attempts_max=1)
    assert [backoff.failed(0, has_progressed=True) for _ in range(3)] == [1, 1, 1]
