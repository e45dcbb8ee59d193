from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from millbeck.cli.commands import consume
from millbeck.cli.commands.consume import ConsumeRequest
from millbeck.cli.connection_options import Target
from millbeck.cli.outage_messages import LEADERLESS_SECONDS
from millbeck.cli.records.record_format import kcat_formatter
from millbeck.cli.records.start_positions import Start
from millbeck.client.errors import PartitionUnavailable
from millbeck.kernel.ids import TopicPartition
from millbeck.records import batch
from millbeck.records.record import Record
from tests.unit.client.fake_cluster import FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
USAGE = {
    "a pattern that is none": (("consume", "--include", "("), "--include: '(' is not a regular expression"),
    "no topic": (("consume",), "no topic given"),
    "two beginnings": (("consume", "a", "--from-beginning", "--offset", "5"), "cannot be combined"),
    "no place": (("consume", "a", "--offset", "somewhere"), "is not earliest"),
    "a format nobody has": (("consume", "a", "-f", "%y"), "%y is not one of"),
    "a property nobody has": (("consume", "a", "--property", "print.cats=true"), "print.cats is not one of"),
    "a group is moved by reset": (("consume", "a", "--group", "g", "--offset", "5"), "millbeck group reset"),
    "no records": (("consume", "a", "--max-messages", "0"), "not in the range"),
    "an isolation nobody has": (("consume", "a", "--isolation-level", "serializable"), "is not one of"),
}


@pytest.mark.parametrize(("arguments", "message"), USAGE.values(), ids=USAGE.keys())
def test_usage(fails: Callable[..., str], arguments: tuple[str, ...], message: str) -> None:
    assert message in fails(*arguments)


def wanted(
    group: str | None, partitions: tuple[int, ...] = (), *, start: Start = Start(), stops_at_end: bool = False
) -> ConsumeRequest:
    return ConsumeRequest(
        topics=("a",),
        include=None,
        partitions=partitions,
        start=start,
        group=group,
        count_max=None,
        idle_ms_max=None,
        stops_at_end=stops_at_end,
    )


def test_a_group_shares_partitions_unless_some_are_named() -> None:
    assert wanted("g", ()).is_member
    assert not wanted("g", (0,)).is_member
    assert not wanted(None, ()).is_member


def test_a_partition_without_a_leader_is_named_while_the_others_are_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reachable(*_: object) -> None: ...

    monkeypatch.setattr(consume, "check_reachable", reachable)

    async def scenario(cluster: FakeCluster) -> None:
        first, _ = cluster.add_topic("a", 2)
        first.leader_id = -1
        target = Target(bootstrap=cluster.bootstrap)
        async with consume._consumer(cluster.environment, target.client_settings(), target, wanted(None)) as consumer:
            reading: Any = asyncio.ensure_future(consumer.poll(timeout_s=2 * LEADERLESS_SECONDS))
            await asyncio.sleep(LEADERLESS_SECONDS - 1)
            assert capsys.readouterr().err == ""
            await reading
        assert capsys.readouterr().err.startswith("millbeck: no leader, so records are not read for now: a-0;")

    simulate(scenario)


def test_until_the_end_of_all_partitions_those_with_a_leader_are_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    async def reachable(*_: object) -> None: ...

    monkeypatch.setattr(consume, "check_reachable", reachable)
    printed: list[bytes] = []

    async def read(cluster: FakeCluster) -> None:
        target = Target(bootstrap=cluster.bootstrap)
        asked = wanted(None, start=Start(is_beginning=True), stops_at_end=True)
        shower = kcat_formatter("%p:%s ", null=b"")
        async with consume._consumer(cluster.environment, target.client_settings(), target, asked) as consumer:
            async for shown, _ in consume._output_of(consumer, asked, shower):
                printed.append(shown)

    async def scenario(cluster: FakeCluster) -> None:
        first, second = cluster.add_topic("a", 2)
        first.append(batch.build([Record(-1, 1, None, b"x")]))
        second.append(batch.build([Record(-1, 1, None, b"1"), Record(-1, 1, None, b"2")]))
        first.leader_id = -1
        with pytest.raises(PartitionUnavailable, match="a-0"):
            await read(cluster)
        assert b"".join(printed) == b"1:1 1:2 "
        printed.clear()
        first.leader_id = 1
        await read(cluster)
        assert sorted(b"".join(printed).split()) == [b"0:x", b"1:1", b"1:2"]

    simulate(scenario)


class MemberOfGroup:
    """What a run with --group and --exit asks its consumer."""

    def __init__(self, lags: dict[TopicPartition, int | None], leaderless: list[TopicPartition]) -> None:
        self.assignment = list(lags)
        self.lag = lags.get
        self.partitions_without_leader = lambda: leaderless

    async def end_offsets(self, partitions: list[TopicPartition]) -> None:
        raise PartitionUnavailable(", ".join(map(str, partitions)))


@pytest.mark.parametrize(
    ("lags", "leaderless", "expected"),
    [
        ({}, [], False),
        ({A0: 0, A1: 0}, [], True),
        ({A0: 0, A1: None}, [], False),
        ({A0: None, A1: 3}, [A0], False),
        ({A0: 0, A1: 0}, [A0], True),
    ],
)
def test_a_member_is_at_the_end_when_it_has_read_everything(
    lags: dict[TopicPartition, int | None], leaderless: list[TopicPartition], expected: bool
) -> None:
    member: Any = MemberOfGroup(lags, leaderless)
    assert asyncio.run(consume._is_at_end(member, None)) is expected


def test_a_member_does_not_wait_for_ever_for_a_partition_without_a_leader() -> None:
    member: Any = MemberOfGroup({A0: None, A1: 0}, [A0])
    with pytest.raises(PartitionUnavailable, match=r"^a-0$"):
        asyncio.run(consume._is_at_end(member, None))


def test_a_run_that_ends_early_names_the_partitions_that_had_no_leader(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def reachable(*_: object) -> None: ...

    monkeypatch.setattr(consume, "check_reachable", reachable)

    async def scenario(cluster: FakeCluster) -> None:
        first, _ = cluster.add_topic("a", 2)
        target = Target(bootstrap=cluster.bootstrap)
        for leader_id, expected in ((first.leader_id, ""), (-1, "millbeck: ended while a-0 had no leader;")):
            first.leader_id = leader_id
            async with consume._consumer(
                cluster.environment, target.client_settings(), target, wanted(None)
            ) as consumer:
                await consumer.poll(timeout_s=1)
            told = capsys.readouterr().err
            assert told.startswith(expected), told
            assert bool(told) == bool(expected)

    simulate(scenario)
