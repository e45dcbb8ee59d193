"""Records that a consumer jumped over are found."""

from __future__ import annotations

from dataclasses import replace

from millbeck.testing.sim.checkers import poll_skips


def test_a_clean_history_skips_nothing(make_history) -> None:
    assert poll_skips.check(make_history()) == []


def test_a_record_missing_from_the_middle_of_a_poll(make_history) -> None:
    history = make_history()
    place = next(place for place, poll in enumerate(history.polls) if len(poll.records) > 4)
    poll = history.polls[place]
    history.polls[place] = replace(poll, records=poll.records[:2] + poll.records[3:])
    assert [anomaly.kind for anomaly in poll_skips.check(history)] == ["poll skip"]


def test_a_poll_that_begins_too_late(make_history) -> None:
    history = make_history()
    places = [place for place, poll in enumerate(history.polls) if poll.partition == "t-0" and poll.records]
    del history.polls[places[1]]
    assert [anomaly.kind for anomaly in poll_skips.check(history)] == ["poll skip"]


def test_a_new_assignment_may_begin_anywhere(make_history) -> None:
    history = make_history()
    history.poll("c0", 1, "t-0", history.final["t-0"][20:30])
    assert poll_skips.check(history) == []
