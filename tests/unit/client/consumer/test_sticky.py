"""Balance and stickiness, as laws."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.client.consumer.sticky import balanced
from millbeck.kernel.ids import TopicPartition

TOPICS = ("a", "b", "c")
COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 7), min_size=1)
SUBSCRIPTIONS = st.lists(st.lists(st.sampled_from(TOPICS), unique=True), min_size=1, max_size=6)


def everything(counts: dict[str, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in sorted(counts) for number in range(counts[topic])]


def share(
    subscriptions: list[list[str]], counts: dict[str, int], owned: dict[str, list[TopicPartition]] | None = None
) -> dict[str, list[TopicPartition]]:
    members = {f"m{index}": topics for index, topics in enumerate(subscriptions)}
    before = {member: (owned or {}).get(member, []) for member in members}
    return balanced(members, before, dict.fromkeys(members, 1), counts)


@settings(max_examples=60)
@given(SUBSCRIPTIONS, COUNTS)
def test_everything_somebody_reads_is_given_once(subscriptions: list[list[str]], counts: dict[str, int]) -> None:
    assignment = share(subscriptions, counts)
    given_out = sorted(partition for partitions in assignment.values() for partition in partitions)
    read = {topic for topics in subscriptions for topic in topics}
    assert given_out == [partition for partition in everything(counts) if partition.topic in read]
    for index, topics in enumerate(subscriptions):
        assert {partition.topic for partition in assignment[f"m{index}"]} <= set(topics)


@settings(max_examples=60)
@given(SUBSCRIPTIONS, COUNTS)
def test_nobody_has_two_more_than_somebody_who_could_take_one(
    subscriptions: list[list[str]], counts: dict[str, int]
) -> None:
    assignment = share(subscriptions, counts)
    for giver, partitions in assignment.items():
        for partition in partitions:
            for index, topics in enumerate(subscriptions):
                if partition.topic in topics:
                    assert len(assignment[giver]) - len(assignment[f"m{index}"]) <= 1


@settings(max_examples=60)
@given(SUBSCRIPTIONS, COUNTS)
def test_sharing_again_changes_nothing(subscriptions: list[list[str]], counts: dict[str, int]) -> None:
    assignment = share(subscriptions, counts)
    assert share(subscriptions, counts, assignment) == assignment


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 20))
def test_a_member_that_leaves_moves_only_its_own(member_count: int, partition_count: int) -> None:
    counts = {"a": partition_count}
    before = share([["a"]] * (member_count + 1), counts)
    left = {member: partitions for member, partitions in before.items() if member != f"m{member_count}"}
    after = share([["a"]] * member_count, counts, left)
    assert all(set(left[member]) <= set(after[member]) for member in left)


@settings(max_examples=40)
@given(st.integers(1, 6), st.integers(1, 20))
def test_a_member_that_joins_takes_no_more_than_its_share(member_count: int, partition_count: int) -> None:
    counts = {"a": partition_count}
    before = share([["a"]] * member_count, counts)
    after = share([["a"]] * (member_count + 1), counts, before)
    moved = sum(len(set(before[member]) - set(after[member])) for member in before)
    assert moved == len(after[f"m{member_count}"]) <= partition_count // (member_count + 1) + 1


def test_of_two_claims_the_later_generation_is_right_and_equal_ones_cancel_out() -> None:
    partitions = everything({"a": 4})
    members = {"m0": ["a"], "m1": ["a"]}
    owned = {"m0": partitions[:2], "m1": partitions[:2]}
    assert set(partitions[:2]) == set(balanced(members, owned, {"m0": 1, "m1": 2}, {"a": 4})["m1"])
    fresh = balanced(members, {"m0": [], "m1": []}, {"m0": 1, "m1": 1}, {"a": 4})
    assert balanced(members, owned, {"m0": 1, "m1": 1}, {"a": 4}) == fresh


def test_claims_to_what_is_gone_or_not_read_are_ignored() -> None:
    members = {"m0": ["a"], "m1": ["b"]}
    owned = {"m0": [TopicPartition("b", 0), TopicPartition("a", 9), TopicPartition("gone", 0)], "m1": []}
    assert balanced(members, owned, {"m0": 1, "m1": 1}, {"a": 1, "b": 1}) == {
        "m0": [TopicPartition("a", 0)],
        "m1": [TopicPartition("b", 0)],
    }
