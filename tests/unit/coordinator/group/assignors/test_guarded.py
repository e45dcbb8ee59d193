"""What an assignor of a deployment returns is checked; where it fails, nothing changes."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.coordinator.group.assignors.guarded import GuardedAssignor, GuardedShareAssignor
from millbeck.coordinator.group.assignors.specification import MemberSpecification, TopicSpecification
from millbeck.kernel.errors import UnknownServerError

A, B = b"a" * 16, b"b" * 16
TOPICS = {A: TopicSpecification(2), B: TopicSpecification(3)}
MEMBERS = [MemberSpecification("m1", None, None, (A, B), {}), MemberSpecification("m2", None, "rack", (A,), {})]


class Answering:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def assign(self, *asked: Any) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def assigned(answer: Any) -> Any:
    return GuardedAssignor("mine", Answering(answer))(MEMBERS, TOPICS)


def shared(answer: Any) -> Any:
    return GuardedShareAssignor("mine", Answering(answer))({"m1": [A, B], "m2": [A]}, {A: (0, 1), B: (2,)}, {})


def test_partitions_are_put_in_order_and_members_without_any_get_none() -> None:
    assert assigned({"m1": {B: [2, 0, 2], A: []}, "gone": {A: [1]}}) == {"m1": {B: (0, 2)}, "m2": {}}
    assert shared({"m1": {A: [1, 0]}, "m2": {A: [0]}}) == {"m1": {A: (0, 1)}, "m2": {A: (0,)}}


WRONG = {
    "two members of a partition": ({"m1": {A: [0]}, "m2": {A: [0]}}, "m2 partition 0 of topic .* which m1 has"),
    "a topic that it has not subscribed to": ({"m2": {B: [0]}}, "m2 partition 0 .* not subscribed"),
    "a partition that is not there": ({"m1": {A: [2]}}, "m1 partition 2"),
    "a negative partition": ({"m1": {A: [-1]}}, "m1 partition -1"),
    "no mapping": ([], "returned list"),
    "no numbers": ({"m1": {A: ["x"]}}, "something else than partition numbers"),
    "no topics": ({"m1": [0]}, "something else than partition numbers"),
    "an exception": (RuntimeError("why"), "failed: RuntimeError: why"),
}


@pytest.mark.parametrize(("answer", "words"), WRONG.values(), ids=WRONG.keys())
def test_anything_else_is_an_error_that_names_the_assignor(answer: Any, words: str) -> None:
    with pytest.raises(UnknownServerError, match=f"assignor mine .*{words}"):
        assigned(answer)


@pytest.mark.parametrize("answer", [{"m2": {B: [2]}}, {"m1": {B: [0]}}, None, RuntimeError()])
def test_so_it_is_with_share_groups(answer: Any) -> None:
    with pytest.raises(UnknownServerError, match="assignor mine"):
        shared(answer)
