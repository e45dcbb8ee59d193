"""Rows of the table of guarantees, each on one seed that is known to show what it says."""

from __future__ import annotations

import pytest

from millbeck.simulation.runs.guarantees import ROWS, GuaranteeRun, is_kept, table


def test_a_row_is_kept_by_a_loss_that_is_allowed_or_by_none() -> None:
    may, never = ROWS[0], ROWS[2]
    assert (may.may_lose, never.may_lose) == (True, False)
    assert is_kept(may, 3)
    assert not is_kept(may, 0)
    assert is_kept(never, 0)
    assert not is_kept(never, 1)


def test_the_table_names_what_is_wrong() -> None:
    losses = [0] * len(ROWS)
    lines = table(losses, [10] * len(ROWS), 5).splitlines()
    assert len(lines) == 2 + len(ROWS)
    assert lines[2].endswith("| may lose | 0 of 5 WRONG | 10 |")
    assert lines[4] == "| 1 | - | a follower | never loses | 0 of 5 | 10 |"


@pytest.mark.parametrize("index", [6, 9], ids=lambda index: str(ROWS[index]))
def test_what_enough_replicas_have_survives(index: int) -> None:
    run = GuaranteeRun(ROWS[index], 1)
    assert run.run() == 0
    assert run.history.acknowledged_count() > 20


def test_what_one_replica_has_goes_with_it() -> None:
    assert any(GuaranteeRun(ROWS[3], seed).run() > 0 for seed in range(6))
