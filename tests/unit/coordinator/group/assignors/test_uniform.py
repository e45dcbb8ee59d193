from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.coordinator.group.assignors.specification import MemberSpecification, Partitions, TopicSpecification
from millbeck.coordinator.group.assignors.uniform import assign_uniformly

IDS = [bytes([index]) * 16 for index in range(4)]
counts = st.lists(st.integers(0, 9), min_size=1, max_size=4)


def member(
    name: str, topics: list[bytes], current: Partitions | None = None, rack: str | None = None
) -> MemberSpecification:
    return MemberSpecification(name, None, rack, tuple(sorted(topics)), current or {})


def flat(assigned: dict[str, Partitions]) -> list[tuple[bytes, int]]:
    return sorted((topic, each) for part in assigned.values() for topic in part for each in part[topic])


def sizes(assigned: dict[str, Partitions]) -> list[int]:
    return [sum(len(each) for each in part.values()) for part in assigned.values()]


@given(partition_counts=counts, before=st.integers(0, 12), after=st.integers(1, 12))
@settings(max_examples=150, deadline=None)
def test_alike_members_get_alike_parts_each_partition_once_and_keep_what_is_fair(
    partition_counts: list[int], before: int, after: int
) -> None:
    topics = {IDS[index]: TopicSpecification(count) for index, count in enumerate(partition_counts)}
    ids = list(topics)
    first = assign_uniformly([member(f"m{index:02}", ids) for index in range(before)], topics)
    second = assign_uniformly(
        [member(f"m{index:02}", ids, first.get(f"m{index:02}")) for index in range(after)], topics
    )
    assert flat(second) == sorted((topic, each) for topic in ids for each in range(topics[topic].partition_count))
    assert max(sizes(second)) - min(sizes(second)) <= 1
    quota = sum(partition_counts) // after
    for name, part in first.items():
        if name in second:
            had = {(topic, each) for topic in part for each in part[topic]}
            has = {(topic, each) for topic in second[name] for each in second[name][topic]}
            assert len(had & has) >= min(len(had), quota)


@given(data=st.data(), partition_counts=counts, count=st.integers(1, 8))
@settings(max_examples=150, deadline=None)
def test_members_that_differ_get_only_what_they_subscribe_to_and_everything_once(
    data: st.DataObject, partition_counts: list[int], count: int
) -> None:
    topics = {IDS[index]: TopicSpecification(each) for index, each in enumerate(partition_counts)}
    wanted = [data.draw(st.lists(st.sampled_from(list(topics)), unique=True)) for _ in range(count)]
    members = [member(f"m{index}", wanted[index]) for index in range(count)]
    first = assign_uniformly(members, topics)
    subscribed = {topic for each in wanted for topic in each}
    assert flat(first) == sorted((topic, each) for topic in subscribed for each in range(topics[topic].partition_count))
    assert all(set(first[each.member_id]) <= set(each.topics) for each in members)
    again = assign_uniformly([each._replace(current=first[each.member_id]) for each in members], topics)
    assert again == first


def test_a_member_that_has_more_than_another_could_have_gives_some_up() -> None:
    topics = {IDS[0]: TopicSpecification(6), IDS[1]: TopicSpecification(2)}
    assigned = assign_uniformly(
        [member("a", IDS[:2], {IDS[0]: tuple(range(6)), IDS[1]: (0, 1)}), member("b", IDS[:1])], topics
    )
    assert sizes(assigned) == [4, 4]
    assert assigned["a"][IDS[1]] == (0, 1)


def test_two_owners_of_one_partition_are_one_owner_afterwards() -> None:
    topics = {IDS[0]: TopicSpecification(2)}
    assigned = assign_uniformly(
        [member("a", IDS[:1], {IDS[0]: (0, 1, 7)}), member("b", IDS[:1], {IDS[0]: (0,)})], topics
    )
    assert flat(assigned) == [(IDS[0], 0), (IDS[0], 1)]


def test_what_is_free_goes_to_a_member_in_the_rack_of_a_replica() -> None:
    topics = {IDS[0]: TopicSpecification(4, (("x",), ("y",), ("x",), ("y",)))}
    assigned = assign_uniformly([member("a", IDS[:1], rack="y"), member("b", IDS[:1], rack="x")], topics)
    assert assigned == {"a": {IDS[0]: (1, 3)}, "b": {IDS[0]: (0, 2)}}


def test_racks_never_unbalance() -> None:
    topics = {IDS[0]: TopicSpecification(4, (("x",),) * 4)}
    assigned = assign_uniformly([member("a", IDS[:1], rack="y"), member("b", IDS[:1], rack="x")], topics)
    assert sizes(assigned) == [2, 2]


def test_nobody_gets_nothing() -> None:
    assert assign_uniformly([], {IDS[0]: TopicSpecification(4)}) == {}
