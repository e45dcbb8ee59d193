"""Records that a consumer jumped over are found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from millbeck.simulation.checkers.polls import poll_skips
from millbeck.simulation.histories.history import History


def test_a_clean_history_skips_nothing(make_history: Callable[[], History]) -> None:
    assert poll_skips(make_history()) == []


def test_a_record_missing_from_the_middle_of_a_poll(make_history: Callable[[], History]) -> None:
    history = make_history()
    place = next(place for place, poll in enumerate(history.polls) if len(poll.records) > 4)
    poll = history.polls[place]
    history.polls[place] = replace(poll, records=poll.records[:2] + poll.records[3:])
    assert [anomaly.kind for anomaly in poll_skips(history)] == ["poll skip"]


def test_a_poll_that_begins_too_late(make_history: Callable[[], History]) -> None:
    history = make_history()
    places = [place for place, poll in enumerate(history.polls) if poll.partition == "t-0" and poll.records]
    del history.polls[places[1]]
    assert [anomaly.kind for anomaly in poll_skips(history)] == ["poll skip"]


def test_a_new_assignment_may_begin_anywhere(make_history: Callable[[], History]) -> None:
    history = make_history()
    history.poll("c0", 1, "t-0", history.final["t-0"][20:30])
    assert poll_skips(history) == []
