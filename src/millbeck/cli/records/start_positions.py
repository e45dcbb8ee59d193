"""Start positions of ``millbeck consume``: offsets in the syntax of Kafka's tools and kcat."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from millbeck.kernel.ids import TopicPartition

if TYPE_CHECKING:
    from millbeck.client.consumer import Consumer

LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The start position; at most one field is set, and none means the end of the log."""

    is_beginning: bool = False
    is_stored: bool = False
    offset: int | None = None
    before_end: int | None = None
    timestamp_ms: int | None = None


def parse_start_offset(text: str) -> Start:
    """Parse ``earliest``, ``latest``, ``stored``, an offset, ``-N``, or ``s@`` and a time; ``ValueError``."""
    match text.lower():
        case "beginning" | "earliest":
            return Start(is_beginning=True)
        case "end" | "latest":
            return Start()
        case "stored":
            return Start(is_stored=True)
    number = text.removeprefix("s@")
    try:
        value = int(number)
    except ValueError:
        raise ValueError(f"{text!r} is not earliest, latest, stored, an offset, -N or s@TIMESTAMP") from None
    if abs(value) > LARGEST:
        raise ValueError(f"{text!r} does not fit in 64 bits")
    if number != text:
        return Start(timestamp_ms=value)
    return Start(offset=value) if value >= 0 else Start(before_end=-value)


def out_of_range_message(offset: int, first: int, end: int) -> str | None:
    """The note for an offset out of range: the valid range, and which offset is used instead."""
    if first <= offset <= end:
        return None
    there = (
        f"the partition has {first} to {end - 1}"
        if end > first
        else f"the partition is empty, the next offset is {end}"
    )
    action = f"starting at {first}" if offset < first else f"waiting at the end, {end}"
    return f"offset {offset} does not exist: {there}; {action}"


async def assign(consumer: Consumer, partitions: Iterable[TopicPartition], start: Start) -> None:
    """Assign partitions to a consumer with their start positions.

    Offsets are looked up before the assignment: once assigned, a consumer starts to fetch, from the end by default.
    """
    wanted = list(partitions)
    offsets: dict[TopicPartition, int] = {}
    if start.offset is not None:
        first, end = await consumer.beginning_offsets(wanted), await consumer.end_offsets(wanted)
        for each in wanted:
            note = out_of_range_message(start.offset, first[each], end[each])
            if note is not None:
                click.echo(f"millbeck: {each}: {note}", err=True)
        offsets = {each: min(max(start.offset, first[each]), end[each]) for each in wanted}
    elif start.before_end is not None:
        first, end = await consumer.beginning_offsets(wanted), await consumer.end_offsets(wanted)
        offsets = {partition: max(first[partition], end[partition] - start.before_end) for partition in wanted}
    elif start.timestamp_ms is not None:
        found = await consumer.offsets_for_times(dict.fromkeys(wanted, start.timestamp_ms))
        offsets = {partition: there.offset for partition, there in found.items() if there is not None}
    consumer.assign(wanted)
    if start.is_beginning:
        consumer.seek_to_beginning(*wanted)
    elif not start.is_stored:
        for partition in wanted:
            if partition in offsets:
                consumer.seek(partition, offsets[partition])
            else:
                consumer.seek_to_end(partition)
