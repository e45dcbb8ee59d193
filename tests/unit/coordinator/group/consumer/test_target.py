from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.consumer.draft import Draft
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.consumer.target import build_group_spec, preferred_assignor


def test_a_problem_names_topics_that_exist_by_id(world: Any, worlds: Any) -> None:
    world.enter_consumer("a", ["t", "nothing"])
    problem = build_group_spec(Draft(world.group()), world.cluster)
    (member,) = problem.members
    assert member.topics == (worlds.TOPIC_ID,)
    assert member.current == {worlds.TOPIC_ID: (0, 1, 2, 3)}
    assert problem.topics[worlds.TOPIC_ID].partition_count == 4
    assert (problem.epoch, problem.size) == (1, 5)


def test_votes() -> None:
    def voters(*names: str | None) -> list[ConsumerMember]:
        return [ConsumerMember(member_id=str(index), assignor=name) for index, name in enumerate(names)]

    offered = ("uniform", "range")
    assert preferred_assignor(voters(), offered) == "uniform"
    assert preferred_assignor(voters(None, "range"), offered) == "range"
    assert preferred_assignor(voters("range", "uniform"), offered) == "uniform"
    assert preferred_assignor(voters("gone", "gone", "range"), offered) == "range"
