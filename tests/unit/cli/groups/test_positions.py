from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from millbeck.cli.groups.positions import (
    Move,
    NewPosition,
    exported,
    for_group,
    parse_datetime,
    parse_duration,
    parse_partitions,
    position_of,
    reset_plan,
)
from millbeck.client.admin.outcomes import Outcomes
from millbeck.client.admin.results import EARLIEST, LATEST, GroupOffset, ListedOffset
from millbeck.kernel.errors import GroupIdNotFound, UnknownTopicOrPartition
from millbeck.kernel.ids import TopicPartition

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NOW_MS = 1769860800000
NONE_GIVEN = {"to_earliest": False, "to_latest": False, "to_current": False, "to_offset": None, "shift_by": None}

POSITIONS = {
    "earliest": ({"to_earliest": True}, NewPosition(timestamp=EARLIEST)),
    "latest": ({"to_latest": True}, NewPosition(timestamp=LATEST)),
    "current": ({"to_current": True}, NewPosition(is_current=True)),
    "offset zero": ({"to_offset": 0}, NewPosition(offset=0)),
    "back": ({"shift_by": -5}, NewPosition(shift=-5)),
    "a moment": ({"to_datetime": "2026-01-31T12:00:00"}, NewPosition(timestamp=NOW_MS)),
    "a while ago": ({"by_duration": "PT1H"}, NewPosition(timestamp=NOW_MS - 3_600_000)),
}


@pytest.mark.parametrize(("given", "expected"), POSITIONS.values(), ids=POSITIONS.keys())
def test_what_the_options_mean(given: dict[str, Any], expected: NewPosition) -> None:
    assert position_of({**NONE_GIVEN, **given}, now=NOW) == expected


def test_a_time_without_a_zone_is_utc() -> None:
    assert parse_datetime("2026-01-31T12:00:00.000") == NOW
    assert parse_datetime("2026-01-31T13:00:00+01:00") == NOW
    with pytest.raises(click.UsageError, match="--to-datetime"):
        parse_datetime("yesterday")


DURATIONS = {
    "P7D": timedelta(days=7),
    "PT1H30M": timedelta(minutes=90),
    "P1DT0.5S": timedelta(days=1, seconds=0.5),
    "pt5m": timedelta(minutes=5),
}


@pytest.mark.parametrize(("text", "expected"), DURATIONS.items())
def test_durations(text: str, expected: timedelta) -> None:
    assert parse_duration(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1H", "P1H", "PT5", "P-1D"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(click.UsageError, match="--by-duration"):
        parse_duration(text)


def test_times_before_the_clock_of_computers_are_its_beginning() -> None:
    assert position_of({"to_datetime": "0001-01-01T00:00:00"}) == NewPosition(timestamp=0)
    assert position_of({"by_duration": "P99999D"}) == NewPosition(timestamp=0)
    with pytest.raises(click.UsageError, match="is too long"):
        position_of({"by_duration": "P999999999999D"})


def test_a_topic_that_is_not_there_is_named_and_guessed() -> None:
    with pytest.raises(click.ClickException, match=r"there is no topic ordres, did you mean orders\?"):
        plan(NewPosition(timestamp=EARLIEST), topics=[("ordres", None)])


def test_partitions_of_a_topic() -> None:
    assert parse_partitions("orders") == ("orders", None)
    assert parse_partitions("orders:0,2") == ("orders", [0, 2])
    with pytest.raises(click.UsageError, match="--topic"):
        parse_partitions("orders:x")


class _Partition:
    def __init__(self, partition: int) -> None:
        self.partition = partition


class _Described:
    def __init__(self, count: int) -> None:
        self.partitions = [_Partition(number) for number in range(count)]


class _Group:
    def __init__(self, state: str) -> None:
        self.state = state


class FakeAdmin:
    """A topic with two partitions, 10 to 100 and 0 to 50; the group is at 40 on the first."""

    def __init__(self, state: str | None = "Empty", *, is_streams: bool = False) -> None:
        self.state = state
        self.is_streams = is_streams

    async def describe_groups(self, groups: list[str]) -> Outcomes[str, Any]:
        return self._described(groups, is_there=self.state is not None and not self.is_streams)

    async def describe_streams_groups(self, groups: list[str]) -> Outcomes[str, Any]:
        return self._described(groups, is_there=self.is_streams)

    def _described(self, groups: list[str], *, is_there: bool) -> Outcomes[str, Any]:
        return Outcomes({name: _Group(self.state or "Dead") if is_there else GroupIdNotFound() for name in groups})

    async def list_groups(self) -> dict[str, Any]:
        return {"bilking": None, "other": None}

    async def list_group_offsets(self, groups: list[str]) -> Outcomes[str, Any]:
        committed = {} if self.state is None else {TopicPartition("orders", 0): GroupOffset(offset=40)}
        return Outcomes(dict.fromkeys(groups, committed))

    async def describe_topics(self, names: list[str]) -> Outcomes[str, Any]:
        return Outcomes({name: _Described(2) if name == "orders" else UnknownTopicOrPartition() for name in names})

    async def list_topics(self) -> dict[str, Any]:
        return {"orders": None}

    async def list_offsets(self, wanted: dict[TopicPartition, int]) -> Outcomes[TopicPartition, Any]:
        places = {EARLIEST: (10, 0), LATEST: (100, 50), NOW_MS: (60, -1)}
        return Outcomes(
            {
                each: ListedOffset(offset=places[time][each.partition], timestamp=-1, leader_epoch=0)
                for each, time in wanted.items()
            }
        )


def plan(
    position: NewPosition,
    *,
    topics: list[tuple[str, list[int] | None]] | None = None,
    state: str | None = "Empty",
    creates: bool = False,
) -> Any:
    admin: Any = FakeAdmin(state)
    chosen: list[tuple[str, list[int] | None]] = [("orders", None)] if topics is None else topics
    found = asyncio.run(reset_plan(admin, "billing", chosen, position, creates=creates))
    moves = [found.get(TopicPartition("orders", number)) for number in (0, 1)]
    return [None if move is None else (move.current, move.new) for move in moves]


async def notes(position: NewPosition) -> list[str | None]:
    admin: Any = FakeAdmin()
    found = await reset_plan(admin, "billing", [("orders", None)], position, creates=False)
    return [move.note for move in found.values()]


def test_an_offset_that_does_not_exist_is_told_of() -> None:
    assert asyncio.run(notes(NewPosition(offset=5))) == ["offset 5 is before the first record, using 10 instead", None]
    assert asyncio.run(notes(NewPosition(offset=70))) == [None, "offset 70 is beyond the end, using 50 instead"]
    assert asyncio.run(notes(NewPosition(timestamp=NOW_MS))) == [None, None]


PLANS = {
    "earliest": (NewPosition(timestamp=EARLIEST), [(40, 10), (None, 0)]),
    "latest": (NewPosition(timestamp=LATEST), [(40, 100), (None, 50)]),
    "a time after the last record is the end": (NewPosition(timestamp=NOW_MS), [(40, 60), (None, 50)]),
    "an offset is kept within the log": (NewPosition(offset=5), [(40, 10), (None, 5)]),
    "and below its end": (NewPosition(offset=70), [(40, 70), (None, 50)]),
    "each its own": (
        NewPosition(offsets={"billing": {TopicPartition("orders", 1): 7, TopicPartition("orders", 0): 500}}),
        [(40, 100), (None, 7)],
    ),
    "current, or the end": (NewPosition(is_current=True), [(40, 40), (None, 50)]),
}


@pytest.mark.parametrize(("position", "expected"), PLANS.values(), ids=PLANS.keys())
def test_the_plan(position: NewPosition, expected: list[tuple[int | None, int]]) -> None:
    assert plan(position) == expected


def test_a_shift_starts_from_what_is_committed() -> None:
    assert plan(NewPosition(shift=-15), topics=[("orders", [0])]) == [(40, 25), None]
    assert plan(NewPosition(shift=-100), topics=[("orders", [0])]) == [(40, 10), None]
    with pytest.raises(click.ClickException, match="orders-1 has no committed offset"):
        plan(NewPosition(shift=1))


def test_all_topics_are_those_the_group_has_committed_for() -> None:
    assert plan(NewPosition(timestamp=EARLIEST), topics=[]) == [(40, 10), (None, 0)]
    with pytest.raises(click.ClickException, match="has no committed offsets"):
        plan(NewPosition(timestamp=EARLIEST), topics=[], state=None, creates=True)


@pytest.mark.parametrize("state", [None, "Dead"])
def test_a_group_that_does_not_exist_is_made_only_when_that_is_wanted(
    state: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(click.ClickException, match=r"no group billing, did you mean bilking\?; --create creates it"):
        plan(NewPosition(timestamp=EARLIEST), state=state)
    assert [new for _, new in plan(NewPosition(timestamp=EARLIEST), state=state, creates=True)] == [10, 0]
    assert "group billing does not exist yet" in capsys.readouterr().err


def test_a_group_with_members_is_left_alone() -> None:
    with pytest.raises(click.ClickException, match="is Stable: stop its members"):
        plan(NewPosition(timestamp=EARLIEST), state="Stable")


def test_a_partition_that_is_not_there_is_named() -> None:
    with pytest.raises(click.ClickException, match="orders has no partition 7"):
        plan(NewPosition(timestamp=EARLIEST), topics=[("orders", [7])])


@pytest.mark.parametrize("groups", [("billing",), ("billing", "mail")])
def test_plans_that_were_printed_can_be_read_back(tmp_path: Path, groups: tuple[str, ...]) -> None:
    plans = {
        name: {
            TopicPartition("t", 0): Move(current=1, new=5 + number, asked=5 + number),
            TopicPartition("u", 3): Move(current=None, new=0, asked=0),
        }
        for number, name in enumerate(groups)
    }
    path = tmp_path / "offsets.csv"
    path.write_text(exported(plans) + "\n")
    position = position_of({"from_file": str(path)})
    for number, name in enumerate(groups):
        assert for_group(position, name, is_only=len(groups) == 1) == NewPosition(
            offsets={name: {TopicPartition("t", 0): 5 + number, TopicPartition("u", 3): 0}}
        )


def test_several_groups_need_a_file_that_names_them(tmp_path: Path) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("t,0,5\n")
    with pytest.raises(click.ClickException, match="no line names the group mail"):
        for_group(position_of({"from_file": str(path)}), "mail", is_only=False)
    path.write_text("billing,t,0,5\n")
    with pytest.raises(click.ClickException, match="no line names the group mail"):
        for_group(position_of({"from_file": str(path)}), "mail", is_only=True)


@pytest.mark.parametrize("text", ["", "t,0\n", "t,zero,1\n", "t,0,-1\n", "a,b,t,0,1\n", "t,0,1\ng,t,0,1\n"])
def test_a_file_that_says_no_offsets_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text(text)
    with pytest.raises(click.UsageError, match="--from-file"):
        position_of({"from_file": str(path)})
    with pytest.raises(click.UsageError, match="--from-file"):
        position_of({"from_file": str(tmp_path / "nothing")})


@pytest.mark.parametrize("state", ["Empty", "NotReady"])
def test_a_streams_group_without_members_is_reset_too(state: str) -> None:
    admin: Any = FakeAdmin(state, is_streams=True)
    position = NewPosition(timestamp=EARLIEST)
    if state == "Empty":
        found = asyncio.run(reset_plan(admin, "billing", [("orders", [0])], position, creates=False))
        assert found[TopicPartition("orders", 0)].new == 10
    else:
        with pytest.raises(click.ClickException, match="billing is NotReady: stop its members"):
            asyncio.run(reset_plan(admin, "billing", [("orders", [0])], position, creates=False))
