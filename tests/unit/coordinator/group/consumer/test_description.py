from __future__ import annotations

from typing import Any


def test_a_group_is_described_as_it_is_committed(world: Any) -> None:
    world.enter_consumer("a", rack="r", instance="i")
    world.log.holds_commits = True
    world.enter_consumer("b")
    described = world.described()
    (member,) = described.members
    assert (described.group_epoch, described.assignment_epoch, described.assignor_name) == (1, 1, "uniform")
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("a", "i", "r", 1)
    assert (member.client_id, member.client_host, member.member_type) == ("c", "/10.0.0.1", 1)
    assert member.target_assignment == member.assignment
    world.commit_log()
    assert len(world.described().members) == 2


def test_topics_that_are_gone_are_not_shown(world: Any) -> None:
    world.enter_consumer("a")
    world.set_topics(u=1)
    assert world.described().members[0].assignment.topic_partitions == []


def test_a_group_that_is_not_there_is_dead(world: Any) -> None:
    described = world.described()
    assert (described.error_code, described.group_state) == (69, "")
