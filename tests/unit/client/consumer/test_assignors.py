"""Strategies decide as those of other clients do, since any member may be the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from millbeck.client import Consumer
from millbeck.client.consumer.assignors import Assignment, Assignor, SubscribedMember, assignors_named, in_order
from millbeck.client.consumer.config import ConsumerConfig
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidConfig
from millbeck.kernel.ids import TopicPartition
from tests.unit.client.one_node import HERE as NODE
from tests.unit.client.one_node import in_world


def named(name: str) -> Assignor:
    return assignors_named([name])[name]


def member(name: str, *topics: str, **more: Any) -> SubscribedMember:
    return SubscribedMember(member_id=name, topics=topics, **more)


def shown(assignment: dict[str, list[TopicPartition]]) -> dict[str, list[str]]:
    return {name: [str(partition) for partition in partitions] for name, partitions in assignment.items()}


def partitions(*names: str) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(name[0], int(name[1:])) for name in names)


RANGE = {
    "even": ([member("c1", "a"), member("c2", "a")], {"a": 4}, {"c1": ["a-0", "a-1"], "c2": ["a-2", "a-3"]}),
    "the first get one more": (
        [member("c2", "a"), member("c1", "a")],
        {"a": 3},
        {"c1": ["a-0", "a-1"], "c2": ["a-2"]},
    ),
    "each topic for itself": (
        [member("c1", "a", "b"), member("c2", "a", "b")],
        {"a": 1, "b": 1},
        {"c1": ["a-0", "b-0"], "c2": []},
    ),
    "who does not read a topic gets none of it": (
        [member("c1", "a"), member("c2", "a", "b")],
        {"a": 2, "b": 2},
        {"c1": ["a-0"], "c2": ["a-1", "b-0", "b-1"]},
    ),
    "a topic that does not exist": ([member("c1", "ghost")], {}, {"c1": []}),
    "instances come first, by name": (
        [member("c1", "a"), member("z", "a", instance_id="i1")],
        {"a": 3},
        {"c1": ["a-2"], "z": ["a-0", "a-1"]},
    ),
}


@pytest.mark.parametrize(("members", "counts", "expected"), RANGE.values(), ids=RANGE.keys())
def test_range(members: list[SubscribedMember], counts: dict[str, int], expected: dict[str, list[str]]) -> None:
    assert shown(named("range").assign(members, counts)) == expected


ROUND_ROBIN = {
    "in turn over all topics": (
        [member("c1", "a", "b"), member("c2", "a", "b")],
        {"a": 3, "b": 3},
        {"c1": ["a-0", "a-2", "b-1"], "c2": ["a-1", "b-0", "b-2"]},
    ),
    "passing over who does not read it": (
        [member("c1", "a"), member("c2", "a", "b"), member("c3", "a", "b", "c")],
        {"a": 1, "b": 2, "c": 3},
        {"c1": ["a-0"], "c2": ["b-0"], "c3": ["b-1", "c-0", "c-1", "c-2"]},
    ),
    "nobody reads it": ([member("c1", "a")], {"a": 1, "b": 1}, {"c1": ["a-0"]}),
}


@pytest.mark.parametrize(("members", "counts", "expected"), ROUND_ROBIN.values(), ids=ROUND_ROBIN.keys())
def test_round_robin(members: list[SubscribedMember], counts: dict[str, int], expected: dict[str, list[str]]) -> None:
    assert shown(named("roundrobin").assign(members, counts)) == expected


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_the_order_of_joining_does_not_matter(name: str) -> None:
    members = [member(f"c{index}", "a", "b") for index in range(5)]
    counts = {"a": 7, "b": 4}
    assignor = named(name)
    expected = assignor.assign(members, counts)
    assert assignor.assign(members[::-1], counts) == expected
    assert sum(map(len, expected.values())) == 11


def test_in_order() -> None:
    members = [member("b", "t"), member("a", "t"), member("z", "t", instance_id="2"), member("y", "t", instance_id="1")]
    assert [entry.member_id for entry in in_order(members)] == ["y", "z", "a", "b"]


def owner(assignor: Assignor, name: str, owned: tuple[TopicPartition, ...], generation: int = 3) -> SubscribedMember:
    return member(name, "a", owned=owned, generation=generation, user_data=assignor.user_data(owned, generation))


def test_sticky_members_say_what_they_had() -> None:
    sticky = named("sticky")
    members = [owner(sticky, "c1", partitions("a1", "a3")), owner(sticky, "c2", partitions("a0", "a2"))]
    assert shown(sticky.assign(members, {"a": 4})) == {"c1": ["a-1", "a-3"], "c2": ["a-0", "a-2"]}


def test_sticky_user_data_is_that_of_the_java_client() -> None:
    expected = bytes.fromhex("00000001 0001 61 00000002 00000001 00000003 00000007")
    assert named("sticky").user_data(partitions("a3", "a1"), 7) == expected


@pytest.mark.parametrize("user_data", [None, b"", b"\0", b"\0\0\0\1\0\1a\x7f\xff\xff\xff", b"\x7f\xff\xff\xff\0\1a"])
def test_user_data_that_makes_no_sense_is_ignored(user_data: bytes | None) -> None:
    members = [member("c1", "a", user_data=user_data), member("c2", "a")]
    assert shown(named("sticky").assign(members, {"a": 2})) == {"c1": ["a-0"], "c2": ["a-1"]}


def test_cooperation_gives_nothing_away_that_is_still_held() -> None:
    cooperative = named("cooperative-sticky")
    assert cooperative.is_cooperative
    first = owner(cooperative, "c1", partitions("a0", "a1", "a2", "a3"))
    newcomer = member("c2", "a", user_data=cooperative.user_data((), -1))
    step = cooperative.assign([first, newcomer], {"a": 4})
    assert shown(step) == {"c1": ["a-0", "a-1"], "c2": []}
    again = owner(cooperative, "c1", tuple(step["c1"]), generation=4)
    assert shown(cooperative.assign([again, newcomer], {"a": 4})) == {"c1": ["a-0", "a-1"], "c2": ["a-2", "a-3"]}


def test_cooperation_takes_what_nobody_holds_at_once() -> None:
    cooperative = named("cooperative-sticky")
    members = [owner(cooperative, "c1", partitions("a0")), owner(cooperative, "c2", partitions("a1"))]
    assert shown(cooperative.assign(members, {"a": 4})) == {"c1": ["a-0", "a-2"], "c2": ["a-1", "a-3"]}


def test_an_outdated_owner_holds_nothing_back() -> None:
    cooperative = named("cooperative-sticky")
    members = [
        owner(cooperative, "c1", partitions("a0", "a1"), generation=2),
        owner(cooperative, "c2", partitions("a1"), generation=5),
    ]
    assert shown(cooperative.assign(members, {"a": 2})) == {"c1": ["a-0"], "c2": ["a-1"]}


def test_a_generation_may_come_in_the_user_data() -> None:
    cooperative = named("cooperative-sticky")
    old_client = member("c1", "a", owned=partitions("a0", "a1"), user_data=cooperative.user_data((), 9))
    newcomer = owner(cooperative, "c2", partitions("a0"), generation=8)
    assert shown(cooperative.assign([old_client, newcomer], {"a": 2})) == {"c1": ["a-0"], "c2": []}


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_simple_strategies_need_no_user_data(name: str) -> None:
    assignor = named(name)
    assert assignor.user_data(partitions("a0"), 3) is None
    assert not assignor.is_cooperative


class Reversed:
    """An assignor of a program's own: the last member gets everything."""

    name = "reversed"
    is_cooperative = False

    def user_data(self, owned: Sequence[TopicPartition], generation: int) -> bytes | None:
        return b"mine"

    def assign(self, members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]) -> Assignment:
        last = in_order(members)[-1].member_id
        everything = [TopicPartition(topic, number) for topic, n in partition_counts.items() for number in range(n)]
        return {member.member_id: everything if member.member_id == last else [] for member in members}


class NoAssignor:
    name = "none"


HERE = __name__


def test_an_assignor_of_ones_own_is_offered_under_its_protocol_name() -> None:
    found = assignors_named([f"{HERE}:Reversed", "range"])
    assert list(found) == ["reversed", "range"]
    assert isinstance(found["reversed"], Reversed)
    config = ConsumerConfig.parse(
        {
            "bootstrap.servers": "h:1",
            "group.id": "g",
            "partition.assignment.strategy": f"{HERE}:Reversed,org.apache.kafka.clients.consumer.RangeAssignor",
        }
    )
    assert config.assignors == (f"{HERE}:Reversed", "range")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rnage", "partition.assignment.strategy: rnage .* built in: range, roundrobin, sticky, cooperative-sticky"),
        (f"{HERE}:Missing", "cannot be loaded"),
        (f"{HERE}:NoAssignor", "has no method user_data"),
    ],
)
def test_what_is_no_assignor_is_refused_when_the_consumer_is_made(name: str, words: str) -> None:
    with pytest.raises(InvalidConfig, match=words):
        Consumer({"bootstrap.servers": "h:1", "group.id": "g"}, partition_assignment_strategy=name)


def test_members_with_an_assignor_of_their_own_share_partitions_by_it() -> None:
    async def scenario(environment: Environment) -> None:
        settings = NODE | {"group.id": "g", "partition.assignment.strategy": f"{HERE}:Reversed"}
        consumers = [
            Consumer(settings, environment=environment, group_instance_id=name, heartbeat_interval_ms=500)
            for name in ("a", "b")
        ]
        for consumer in consumers:
            consumer.subscribe(["t"])
        async with asyncio.timeout(60):
            while [len(consumer.assignment) for consumer in consumers] != [0, 2]:
                await asyncio.gather(*(consumer.poll(timeout_s=0.5) for consumer in consumers))
        assert consumers[1].assignment == [TopicPartition("t", 0), TopicPartition("t", 1)]
        for consumer in consumers:
            await consumer.close()

    in_world(scenario)
