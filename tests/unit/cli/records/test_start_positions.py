from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.cli.records.start_positions import Start, assign, out_of_range_message, parse_start_offset
from millbeck.client.consumer import OffsetAndTimestamp
from millbeck.kernel.ids import TopicPartition

STARTS = {
    "earliest": Start(is_beginning=True),
    "Beginning": Start(is_beginning=True),
    "latest": Start(),
    "end": Start(),
    "stored": Start(is_stored=True),
    "0": Start(offset=0),
    "42": Start(offset=42),
    "-5": Start(before_end=5),
    "s@1700": Start(timestamp_ms=1700),
}


@pytest.mark.parametrize(("text", "expected"), STARTS.items())
def test_places_to_begin(text: str, expected: Start) -> None:
    assert parse_start_offset(text) == expected


@pytest.mark.parametrize("text", ["9" * 20, "-" + "9" * 20, "s@" + "9" * 20])
def test_what_is_too_large(text: str) -> None:
    with pytest.raises(ValueError, match="64 bits"):
        parse_start_offset(text)


@pytest.mark.parametrize("text", ["", "first", "s@", "s@noon", "1.5"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(ValueError, match="is not earliest"):
        parse_start_offset(text)


A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeConsumer:
    """Partition A holds 10 to 100, B 0 to 3; B has no record later than any time."""

    def __init__(self) -> None:
        self.places: dict[TopicPartition, object] = {}

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.places = dict.fromkeys(partitions, "as it is")

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.places[partition] = offset

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self.places.update(dict.fromkeys(partitions, "beginning"))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self.places.update(dict.fromkeys(partitions, "end"))

    async def beginning_offsets(self, _: object) -> dict[TopicPartition, int]:
        return {A: 10, B: 0}

    async def end_offsets(self, _: object) -> dict[TopicPartition, int]:
        return {A: 100, B: 3}

    async def offsets_for_times(self, _: object) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return {A: OffsetAndTimestamp(55, 1, 0), B: None}


PLACES = {
    "beginning": (Start(is_beginning=True), {A: "beginning", B: "beginning"}),
    "end": (Start(), {A: "end", B: "end"}),
    "stored": (Start(is_stored=True), {A: "as it is", B: "as it is"}),
    "offset": (Start(offset=2), {A: 10, B: 2}),
    "offset that is not there": (Start(offset=50), {A: 50, B: 3}),
    "before the end, but not before the beginning": (Start(before_end=5), {A: 95, B: 0}),
    "time, or the end": (Start(timestamp_ms=1), {A: 55, B: "end"}),
}


NOTES = {
    "within": (12, 10, 100, None),
    "the end is where the next one comes": (100, 10, 100, None),
    "beyond": (101, 10, 100, "offset 101 does not exist: the partition has 10 to 99; waiting at the end, 100"),
    "gone": (9, 10, 100, "offset 9 does not exist: the partition has 10 to 99; starting at 10"),
    "empty": (5, 3, 3, "offset 5 does not exist: the partition is empty, the next offset is 3; waiting at the end, 3"),
}


@pytest.mark.parametrize(("offset", "first", "end", "expected"), NOTES.values(), ids=NOTES.keys())
def test_an_offset_that_is_not_there_is_told_of(offset: int, first: int, end: int, expected: str | None) -> None:
    assert out_of_range_message(offset, first, end) == expected


def test_each_partition_without_the_offset_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    consumer: Any = FakeConsumer()
    asyncio.run(assign(consumer, [A, B], Start(offset=50)))
    assert (
        capsys.readouterr().err
        == "millbeck: t-1: offset 50 does not exist: the partition has 0 to 2; waiting at the end, 3\n"
    )


@pytest.mark.parametrize(("start", "expected"), PLACES.values(), ids=PLACES.keys())
def test_where_a_consumer_is_put(start: Start, expected: dict[TopicPartition, object]) -> None:
    consumer: Any = FakeConsumer()
    asyncio.run(assign(consumer, [A, B], start))
    assert consumer.places == expected
