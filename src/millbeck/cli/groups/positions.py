"""The offset options of ``group reset``, and the plan computed from them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from millbeck.client.admin import Admin
    from millbeck.kernel.ids import TopicPartition

ANY_GROUP: Final = ""
EMPTY: Final = "Empty"
DEAD: Final = "Dead"
"""The group state that older brokers return for a group that does not exist."""
_DURATION: Final = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPosition:
    """The rule for the new offsets; exactly one field is set."""

    timestamp: int | None = None
    """A timestamp as in ListOffsets, or its values for earliest and latest."""
    offset: int | None = None
    shift: int | None = None
    is_current: bool = False
    offsets: Mapping[str, Mapping[TopicPartition, int]] | None = None
    """Explicit offsets by group and partition; the group of `ANY_GROUP` are those of a file that names none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The change of one partition's committed offset."""

    current: int | None
    new: int
    asked: int
    """The requested offset; ``new`` differs when it is out of range."""

    @property
    def note(self) -> str | None:
        """The note to print when the requested offset is out of range."""
        if self.asked == self.new:
            return None
        where = "before the first record" if self.asked < self.new else "beyond the end"
        return f"offset {self.asked} is {where}, using {self.new} instead"


def position_of(options: Mapping[str, Any], now: datetime | None = None) -> NewPosition:
    """The position that the options give; there must be exactly one."""
    from millbeck.client.admin.results import EARLIEST, LATEST

    given = {name: value for name, value in options.items() if value is not None and value is not False}
    if len(given) != 1:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"give exactly one of {names}")
    name, value = next(iter(given.items()))
    match name:
        case "to_earliest":
            return NewPosition(timestamp=EARLIEST)
        case "to_latest":
            return NewPosition(timestamp=LATEST)
        case "to_current":
            return NewPosition(is_current=True)
        case "to_offset":
            return NewPosition(offset=value)
        case "shift_by":
            return NewPosition(shift=value)
        case "to_datetime":
            # No record is older than the epoch, and negative timestamps have special meanings in ListOffsets.
            return NewPosition(timestamp=max(0, _milliseconds(parse_datetime(value))))
        case "from_file":
            return NewPosition(offsets=read_offsets(value))
        case _:
            assert name == "by_duration", name
            ago_ms = parse_duration(value) // timedelta(milliseconds=1)
            return NewPosition(timestamp=max(0, _milliseconds(now or datetime.now(UTC)) - ago_ms))


def read_offsets(path: str) -> dict[str, dict[TopicPartition, int]]:
    """Read a file of lines TOPIC,PARTITION,OFFSET, all of them with or without a group before; it has no header, and
    empty lines are skipped."""
    from millbeck.kernel.ids import TopicPartition

    found: dict[str, dict[TopicPartition, int]] = {}
    try:
        with click.open_file(path) as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                parts = [part.strip().strip('"') for part in line.split(",")]
                group, *place = parts if len(parts) == 4 else [ANY_GROUP, *parts]
                if len(place) != 3 or not all(part.isdigit() for part in place[1:]):
                    raise click.UsageError(
                        f"--from-file: line {number} of {path} is not [GROUP,]TOPIC,PARTITION,OFFSET"
                    )
                found.setdefault(group, {})[TopicPartition(place[0], int(place[1]))] = int(place[2])
    except OSError as error:
        raise click.UsageError(f"--from-file: {error}") from error
    if not found:
        raise click.UsageError(f"--from-file: {path} contains no partition")
    if ANY_GROUP in found and len(found) > 1:
        raise click.UsageError(f"--from-file: some lines of {path} name a group, and others do not")
    return found


def exported(plans: Mapping[str, Mapping[TopicPartition, Move]]) -> str:
    """The new offsets as CSV that `read_offsets` can read; with several groups, each line starts with the group."""
    return "".join(
        f"{f'{group},' * (len(plans) > 1)}{each.topic},{each.partition},{move.new}\n"
        for group, plan in plans.items()
        for each, move in plan.items()
    )


def for_group(position: NewPosition, group: str, *, is_only: bool) -> NewPosition:
    """The position with the offsets of this group alone; ``is_only`` says that no other group is reset."""
    if position.offsets is None:
        return position
    offsets = position.offsets.get(group) or (position.offsets.get(ANY_GROUP) if is_only else None)
    if offsets is None:
        raise click.ClickException(f"--from-file: no line names the group {group}")
    return NewPosition(offsets={group: offsets})


def parse_datetime(text: str) -> datetime:
    """Parse ISO 8601; a time without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.UsageError(
            f"--to-datetime: {text!r} is not a date and time such as 2026-01-31T12:00:00.000: {error}"
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def parse_duration(text: str) -> timedelta:
    """Parse an ISO 8601 duration of days and smaller units: ``P1DT2H30M``."""
    found = _DURATION.fullmatch(text.upper())
    if found is None or not any(found.groups()):
        raise click.UsageError(f"--by-duration: expected a duration such as P7D or PT1H30M, not {text!r}")
    try:
        return timedelta(**{unit: float(number) for unit, number in found.groupdict().items() if number})
    except OverflowError as error:
        raise click.UsageError(f"--by-duration: {text!r} is too long") from error


def parse_partitions(text: str) -> tuple[str, list[int] | None]:
    """Parse topics and partitions: ``orders:0,1`` names partitions, ``orders`` alone means all."""
    topic, colon, numbers = text.partition(":")
    if not colon:
        return topic, None
    if not all(number.isdigit() for number in numbers.split(",")):
        raise click.UsageError(f"--topic: {text!r} is not TOPIC or TOPIC:0,1")
    return topic, [int(number) for number in numbers.split(",")]


async def reset_plan(
    admin: Admin, group: str, chosen: Sequence[tuple[str, list[int] | None]], position: NewPosition, *, creates: bool
) -> dict[TopicPartition, Move]:
    """The committed and the new offset by partition; without topics, of every topic of the group. Changes nothing.

    A position with offsets has those of this group (`for_group`).
    """
    await _check_inactive(admin, group, creates=creates)
    committed = {each: found.offset for each, found in (await admin.list_group_offsets([group]))[group].items()}
    if position.offsets is not None:
        by_topic: dict[str, list[int] | None] = {}
        for each in position.offsets[group]:
            by_topic[each.topic] = [*(by_topic.get(each.topic) or ()), each.partition]
        chosen = list(by_topic.items())
    topics = chosen or [(name, None) for name in dict.fromkeys(each.topic for each in committed)]
    if not topics:
        raise click.ClickException(f"group {group} has no committed offsets")
    partitions = await _partitions_of(admin, topics)
    return await _moves(admin, partitions, committed, position, group)


async def _check_inactive(admin: Admin, group: str, *, creates: bool) -> None:
    """Refuse a group with members, which would overwrite the offsets, and a missing group, which may be a typo."""
    state = await _state_of(admin, group)
    if state == DEAD:
        if not creates:
            from millbeck.cli.suggestions import did_you_mean

            hint = did_you_mean(group, await admin.list_groups())
            raise click.ClickException(f"there is no group {group}{hint}; --create creates it with these offsets")
        click.echo(f"group {group} does not exist yet: these offsets create it", err=True)
    elif state != EMPTY:
        raise click.ClickException(f"group {group} is {state}: stop its members before its offsets are reset")


async def _state_of(admin: Admin, group: str) -> str:
    """The state of a classic, consumer or streams group; Dead for one that does not exist."""
    from millbeck.kernel.errors import GroupIdNotFound, UnsupportedVersion

    outcomes = await admin.describe_groups([group])
    if not isinstance(outcomes.failed.get(group), GroupIdNotFound):
        return outcomes[group].state
    streams = await admin.describe_streams_groups([group])
    is_missing = isinstance(streams.failed.get(group), GroupIdNotFound | UnsupportedVersion)
    return DEAD if is_missing else streams[group].state


async def _partitions_of(admin: Admin, topics: Sequence[tuple[str, list[int] | None]]) -> list[TopicPartition]:
    from millbeck.kernel.errors import UnknownTopicOrPartition
    from millbeck.kernel.ids import TopicPartition

    outcomes = await admin.describe_topics([name for name, _ in topics])
    for name, error in outcomes.failed.items():
        if isinstance(error, UnknownTopicOrPartition):
            from millbeck.cli.suggestions import did_you_mean

            hint = did_you_mean(name, await admin.list_topics())
            raise click.ClickException(f"there is no topic {name}{hint}")
    described = outcomes.all()
    partitions: list[TopicPartition] = []
    for name, numbers in topics:
        there = [each.partition for each in described[name].partitions]
        missing = [number for number in numbers or () if number not in there]
        if missing:
            raise click.ClickException(f"topic {name} has no partition {missing[0]}")
        partitions += [TopicPartition(name, number) for number in (there if numbers is None else numbers)]
    return sorted(partitions)


async def _moves(
    admin: Admin,
    partitions: Sequence[TopicPartition],
    committed: Mapping[TopicPartition, int],
    position: NewPosition,
    group: str,
) -> dict[TopicPartition, Move]:
    from millbeck.client.admin.results import EARLIEST, LATEST

    async def listed(timestamp: int) -> dict[TopicPartition, int]:
        found = (await admin.list_offsets(dict.fromkeys(partitions, timestamp))).all()
        return {partition: each.offset for partition, each in found.items()}

    first, end = await listed(EARLIEST), await listed(LATEST)
    by_time = await listed(position.timestamp) if position.timestamp is not None else {}
    moves: dict[TopicPartition, Move] = {}
    for each in partitions:
        if position.timestamp is not None:
            wanted = by_time[each] if by_time[each] >= 0 else end[each]
        elif position.offset is not None:
            wanted = position.offset
        elif position.offsets is not None:
            wanted = position.offsets[group][each]
        elif position.is_current:
            wanted = committed.get(each, end[each])
        else:
            assert position.shift is not None
            if each not in committed:
                raise click.ClickException(f"{each} has no committed offset to shift by {position.shift}")
            wanted = committed[each] + position.shift
        new = min(max(wanted, first[each]), end[each])
        moves[each] = Move(current=committed.get(each), new=new, asked=wanted)
    return moves


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
