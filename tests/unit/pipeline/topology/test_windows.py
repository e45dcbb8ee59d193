"""Windows are checked where they are declared."""

from __future__ import annotations

from datetime import timedelta

import pytest

from millbeck.pipeline.errors import TopologyError
from millbeck.pipeline.topology.windows import hopping, interval, length_ms, session, sliding_join, tumbling


@pytest.mark.parametrize(
    ("length", "milliseconds"),
    [
        ("5 minutes", 300_000),
        ("1 hour 30 minutes", 5_400_000),
        ("250 milliseconds", 250),
        ("1 Day", 86_400_000),
        ("0 seconds", 0),
        (timedelta(seconds=1.5), 1500),
    ],
)
def test_lengths(length: str | timedelta, milliseconds: int) -> None:
    assert length_ms(length) == milliseconds


@pytest.mark.parametrize("length", ["", "five minutes", "5", "5 fortnights", "5 minutes and more", "-1 second"])
def test_what_is_no_length_is_refused_by_name(length: str) -> None:
    with pytest.raises(TopologyError, match="length of time"):
        length_ms(length)


def test_a_tumbling_window_advances_by_its_size() -> None:
    window = tumbling("1 minute", grace="5 seconds")
    assert (window.size_ms, window.advance_ms, window.grace_ms) == (60_000, 60_000, 5000)


@pytest.mark.parametrize("advance", ["0 seconds", "2 minutes"])
def test_a_window_cannot_advance_by_more_than_its_size_or_not_at_all(advance: str) -> None:
    with pytest.raises(TopologyError, match="advance"):
        hopping("1 minute", advance=advance)


def test_a_session_needs_a_gap() -> None:
    assert session("10 seconds").gap_ms == 10_000
    with pytest.raises(TopologyError, match="gap"):
        session("0 seconds")


def test_a_join_window_is_symmetric_or_has_two_lengths() -> None:
    assert sliding_join("3 seconds").before_ms == sliding_join("3 seconds").after_ms == 3000
    one_sided = sliding_join(after="3 seconds", grace="1 second")
    assert (one_sided.before_ms, one_sided.after_ms, one_sided.grace_ms) == (0, 3000, 1000)
    with pytest.raises(TopologyError, match="either within"):
        sliding_join("1 second", before="1 second")
    with pytest.raises(TopologyError, match="needs a window"):
        sliding_join()


def test_intervals_are_spelled_for_spark() -> None:
    assert interval(1500) == "1500 milliseconds"
