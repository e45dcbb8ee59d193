"""The ledger decides for its owner only; the workers themselves are in tests/sim."""

from __future__ import annotations

import pytest

from millbeck.client.producer.transactions import PreparedState
from millbeck.simulation.workloads.two_phase import NOTHING_DECIDED, Ledger, TakenOver


def test_whoever_takes_a_page_over_decides() -> None:
    ledger = Ledger()
    first = ledger.take(3)
    assert ledger.pages[3].state == NOTHING_DECIDED
    ledger.decide(3, first, 4, PreparedState(7, 0))
    assert (ledger.pages[3].position, ledger.pages[3].state) == (4, "7:0")
    second = ledger.take(3)
    with pytest.raises(TakenOver):
        ledger.decide(3, first, 9, PreparedState(7, 1))
    assert ledger.pages[3].position == 4
    ledger.decide(3, second, 5, PreparedState(7, 2))
    assert (ledger.pages[3].position, ledger.pages[3].state) == (5, "7:2")
