"""Where ``millbeck consume`` begins to read: offsets as Kafka's tools and kcat write them."""

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
    """Exactly one of these, or nothing for the end."""

    is_beginning: bool = False
    is_stored: bool = False
    offset: int | None = None
    before_end: int | None = None
    timestamp_ms: int | None = None


def parse_start(text: str) -> Start:
    """``earliest``, ``latest``, ``stored``, an offset, ``-N`` before the end, ``s@`` and a time; ``ValueError``."""
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
        raise ValueError(f"{text!r} is more than 64 bits hold")
    if number != text:
        return Start(timestamp_ms=value)
    return Start(offset=value) if value >= 0 else Start(before_end=-value)


def range_note(offset: int, first: int, end: int) -> str | None:
    """What to say of an offset at which there is no record: where there are some, and what is done."""
    if first <= offset <= end:
        return None
    there = f"it has {first} to {end - 1}" if end > first else f"it is empty, the next will be {end}"
    action = f"beginning at {first}" if offset < first else f"waiting at the end, {end}"
    return f"there is no offset {offset}: {there}; {action}"


async def assign(consumer: Consumer, partitions: Iterable[TopicPartition], start: Start) -> None:
    """Let a consumer read these partitions from where it shall begin.

    Offsets are looked up first: a consumer that is assigned partitions begins to wait for records at their end.
    """
    wanted = list(partitions)
    offsets: dict[TopicPartition, int] = {}
    if start.offset is not None:
        first, end = await consumer.beginning_offsets(wanted), await consumer.end_offsets(wanted)
        for each in wanted:
            note = range_note(start.offset, first[each], end[each])
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
