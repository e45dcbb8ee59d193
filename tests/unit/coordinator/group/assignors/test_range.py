from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from millbeck.coordinator.group.assignors.range import assign_ranges
from millbeck.coordinator.group.assignors.specification import MemberSpecification, TopicSpecification

ONE, TWO = b"1" * 16, b"2" * 16


def member(name: str, *topics: bytes, instance: str | None = None) -> MemberSpecification:
    return MemberSpecification(name, instance, None, tuple(sorted(topics)), {})


@given(count=st.integers(1, 9), partitions=st.integers(0, 20))
@settings(max_examples=100, deadline=None)
def test_pieces_are_contiguous_alike_and_cover_everything_once(count: int, partitions: int) -> None:
    topics = {ONE: TopicSpecification(partitions)}
    assigned = assign_ranges([member(f"m{index}", ONE) for index in range(count)], topics)
    parts = sorted(part[ONE] for part in assigned.values() if ONE in part)
    assert [each for part in parts for each in part] == list(range(partitions))
    sizes = [len(part.get(ONE, ())) for part in assigned.values()]
    assert max(sizes) - min(sizes) <= 1


def test_topics_of_one_size_are_cut_alike() -> None:
    topics = {ONE: TopicSpecification(5), TWO: TopicSpecification(5)}
    assigned = assign_ranges([member("b", ONE, TWO), member("a", ONE, TWO)], topics)
    assert assigned == {"a": {ONE: (0, 1, 2), TWO: (0, 1, 2)}, "b": {ONE: (3, 4), TWO: (3, 4)}}


def test_members_with_an_instance_id_come_first() -> None:
    assigned = assign_ranges([member("a", ONE), member("z", ONE, instance="i")], {ONE: TopicSpecification(3)})
    assert assigned == {"a": {ONE: (2,)}, "z": {ONE: (0, 1)}}


def test_members_keep_their_order_when_one_leaves_and_another_comes() -> None:
    topics = {ONE: TopicSpecification(6)}
    first = assign_ranges([member(name, ONE) for name in "bcd"], topics)
    staying = [member(name, ONE)._replace(current=first[name]) for name in "cd"]
    second = assign_ranges([member("a", ONE), *staying], topics)
    assert second == {"c": {ONE: (0, 1)}, "d": {ONE: (2, 3)}, "a": {ONE: (4, 5)}}


def test_a_topic_belongs_to_its_subscribers_alone() -> None:
    topics = {ONE: TopicSpecification(2), TWO: TopicSpecification(2)}
    assigned = assign_ranges([member("a", ONE), member("b", ONE, TWO), member("c")], topics)
    assert assigned == {"a": {ONE: (0,)}, "b": {ONE: (1,), TWO: (0, 1)}, "c": {}}


RACKS = (("r1",), ("r1",), ("r2",), ("r2",), ("r3",), ("r3",))


def in_rack(name: str, rack: str | None) -> MemberSpecification:
    return member(name, ONE, TWO)._replace(rack_id=rack)


def test_new_members_get_the_pieces_of_their_rack() -> None:
    topics = {ONE: TopicSpecification(6, RACKS), TWO: TopicSpecification(6, RACKS)}
    members = [in_rack("a", "r3"), in_rack("b", "r2"), in_rack("c", "r1")]
    assigned = assign_ranges(members, topics)
    assert {name: part[ONE] for name, part in assigned.items()} == {"c": (0, 1), "b": (2, 3), "a": (4, 5)}
    assert all(part[ONE] == part[TWO] for part in assigned.values()), "joins by key stay local"
    # Without racks, or with one for all, nothing is different from before.
    assert assign_ranges([in_rack(name, None) for name in "abc"], topics)["a"][ONE] == (0, 1)
    assert assign_ranges([in_rack(name, "r3") for name in "abc"], topics)["a"][ONE] == (0, 1)


def test_a_piece_is_kept_wherever_its_member_is() -> None:
    topics = {ONE: TopicSpecification(6, RACKS), TWO: TopicSpecification(6, RACKS)}
    first = assign_ranges([in_rack("a", "r3"), in_rack("b", "r2")], topics)
    assert (first["b"][ONE], first["a"][ONE]) == ((0, 1, 2), (3, 4, 5))
    staying = [in_rack("a", "r1")._replace(current=first["a"]), in_rack("b", "r3")._replace(current=first["b"])]
    assert assign_ranges(staying, topics) == first


@given(racks=st.lists(st.sampled_from(("r1", "r2", "r3", None)), min_size=1, max_size=9), partitions=st.integers(0, 20))
@settings(max_examples=100, deadline=None)
def test_with_racks_too_pieces_are_contiguous_and_cover_everything_once(
    racks: list[str | None], partitions: int
) -> None:
    spread = tuple((f"r{index % 3 + 1}",) for index in range(partitions))
    members = [member(f"m{index}", ONE)._replace(rack_id=rack) for index, rack in enumerate(racks)]
    assigned = assign_ranges(members, {ONE: TopicSpecification(partitions, spread)})
    parts = sorted(part[ONE] for part in assigned.values() if ONE in part)
    assert [each for part in parts for each in part] == list(range(partitions))
    assert all(part == tuple(range(part[0], part[-1] + 1)) for part in parts)
    sizes = [len(part.get(ONE, ())) for part in assigned.values()]
    assert max(sizes) - min(sizes) <= 1
