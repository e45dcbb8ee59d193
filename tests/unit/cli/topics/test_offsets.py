from __future__ import annotations

from collections.abc import Callable

import click
import pytest

from millbeck.cli.topics.offsets import named, parse_selection, parse_time
from millbeck.kernel.ids import TopicPartition

PLACES = [TopicPartition(topic, number) for topic in ("orders", "events") for number in range(5)]
SELECTIONS = {
    "orders": ["orders-0", "orders-1", "orders-2", "orders-3", "orders-4"],
    "orders:2": ["orders-2"],
    "orders:1-3": ["orders-1", "orders-2"],
    "orders:3-": ["orders-3", "orders-4"],
    "orders:-1": ["orders-0"],
    ":4": ["orders-4", "events-4"],
    "e.*:0": ["events-0"],
    "order": [],
}


@pytest.mark.parametrize(("text", "expected"), SELECTIONS.items())
def test_a_selection_names_partitions(text: str, expected: list[str]) -> None:
    wants = parse_selection(text)
    assert [str(place) for place in PLACES if wants(place)] == expected


@pytest.mark.parametrize("text", ["orders:x", "a,b", "orders:1:2", "[:0"])
def test_no_selection(text: str) -> None:
    with pytest.raises(click.UsageError):
        parse_selection(text)


def test_partitions_of_a_topic() -> None:
    wants = named("o.*", "0,3")
    assert [str(place) for place in PLACES if wants(place)] == ["orders-0", "orders-3"]
    with pytest.raises(click.UsageError, match="not a list of numbers"):
        named("orders", "0,x")


def test_times_have_names_or_are_milliseconds() -> None:
    assert [parse_time(text) for text in ("latest", "earliest", "-3", "1767225600000")] == [-1, -2, -3, 1767225600000]
    for text in ("soon", "-7", "1.5", ""):
        with pytest.raises(click.UsageError, match="neither one of latest, earliest"):
            parse_time(text)


def test_two_ways_of_naming_partitions_exclude_each_other(fails: Callable[..., str]) -> None:
    assert "cannot be combined with --topic" in fails("topic", "offsets", "--topic", "a", "--topic-partitions", "a:0")
