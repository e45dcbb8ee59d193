"""The record of what clients did and saw."""

from __future__ import annotations

import pytest

from millbeck.simulation.histories.history import Anomaly, History, SendOutcome


def test_sends_are_counted_by_producer_and_partition_and_begin_unknown() -> None:
    history = History()
    entries = [history.send("p", "t-0", "a"), history.send("p", "t-1", "b"), history.send("p", "t-0", "c")]
    assert [entry.index for entry in entries] == [0, 0, 1]
    assert {entry.outcome for entry in entries} == {SendOutcome.UNKNOWN}
    entries[0].acknowledged(7)
    entries[1].failed()
    assert (entries[0].outcome, entries[0].offset) == (SendOutcome.ACKNOWLEDGED, 7)
    assert entries[1].outcome is SendOutcome.FAILED
    assert history.acknowledged_count() == 1
    assert history.sent("c") is entries[2]
    assert history.sent("d") is None


def test_values_are_unique() -> None:
    history = History()
    history.send("p", "t-0", "a")
    with pytest.raises(ValueError, match="unique"):
        history.send("q", "t-1", "a")


def test_observations_are_polls_and_final_reads() -> None:
    history = History()
    history.poll("c", 0, "t-0", [(0, "a"), (1, "b")])
    history.record_final_read("t-1", [(0, "c")])
    assert list(history.observations()) == [("t-0", 0, "a"), ("t-0", 1, "b"), ("t-1", 0, "c")]


def test_an_anomaly_reads_as_a_sentence() -> None:
    assert str(Anomaly("duplicate", "a is there twice")) == "duplicate: a is there twice"
