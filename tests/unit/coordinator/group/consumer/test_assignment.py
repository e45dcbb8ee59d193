from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millbeck.coordinator.group.consumer import assignment
from millbeck.coordinator.group.consumer.records import AssignedTopic

A, B = b"a" * 16, b"b" * 16
places = st.sets(st.tuples(st.sampled_from([A, B]), st.integers(0, 4)))


@given(one=places, other=places)
def test_it_behaves_like_a_set_of_places(one: set[tuple[bytes, int]], other: set[tuple[bytes, int]]) -> None:
    left, right = assignment.gathered(one), assignment.gathered(other)
    assert set(assignment.places_of(assignment.shared(left, right))) == one & other
    assert set(assignment.places_of(assignment.without(left, right))) == one - other
    assert set(assignment.places_of(assignment.together(left, right))) == one | other
    assert assignment.is_within(left, right) == (one <= other)
    assert assignment.count_of(left) == len(one)


def test_what_is_sent_twice_counts_once_and_is_put_in_order() -> None:
    found = assignment.from_wire([AssignedTopic(B, [3, 1]), AssignedTopic(A, [0]), AssignedTopic(B, [1])])
    assert list(found.items()) == [(A, (0,)), (B, (1, 3))]


def test_topics_without_a_name_are_left_out() -> None:
    assert assignment.named({A: (1,), B: (2,)}, {B: "b"}) == [("b", (2,))]
