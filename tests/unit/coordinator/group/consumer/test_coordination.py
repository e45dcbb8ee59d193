from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.consumer import coordination
from millbeck.coordinator.group.consumer.cluster_view import GroupSettings
from millbeck.coordinator.group.consumer.member import ConsumerMember
from millbeck.coordinator.group.consumer.records import ConsumerGroupMemberMetadataKey
from millbeck.coordinator.group.records import GroupRecord
from millbeck.kernel.errors import NotEnoughReplicas, NotLeaderOrFollower


def partitions(outcome: Any) -> list[int] | None:
    found = outcome.response.assignment
    return None if found is None else [each for topic in found.topic_partitions for each in topic.partitions]


def test_a_member_that_is_not_heard_of_goes(world: Any) -> None:
    world.enter_consumer("a")
    world.advance(44_000)
    world.beat("a", 1)
    world.advance(44_000)
    assert list(world.group().members) == ["a"]
    world.advance(2000)
    assert list(world.group().members) == []
    assert world.beat("a", 1).code_name == "UNKNOWN_MEMBER_ID"
    assert world.shard.statistics().counters.expired_members == 1


def test_a_session_outlives_a_log_that_refuses(world: Any) -> None:
    world.enter_consumer("a")
    world.log.refusal = NotEnoughReplicas()
    world.advance(50_000)
    assert list(world.group().members) == ["a"]
    world.log.refusal = None
    world.advance(1000)
    assert list(world.group().members) == []


def test_a_group_s_own_session_counts(world: Any) -> None:
    world.cluster.publish_settings({"g": GroupSettings(50_000, 7000, 0)})
    assert world.enter_consumer("a").response.heartbeat_interval_ms == 7000
    world.advance(49_000)
    assert list(world.group().members) == ["a"]
    world.advance(2000)
    assert list(world.group().members) == []


def test_a_member_that_does_not_let_go_is_fenced_after_its_rebalance_timeout(world: Any) -> None:
    world.beat("a", 0, topics=["t"], owned={}, rebalance_ms=10_000)
    world.advance(2000)
    world.enter_consumer("b")
    world.beat("a", 1)
    for _ in range(5):
        world.advance(1900)
        assert world.beat("a", 1, owned={"t": [0, 1, 2, 3]}).code_name == "NONE"
    world.advance(600)
    assert world.beat("a", 1).code_name == "UNKNOWN_MEMBER_ID"
    world.advance(1000)
    assert partitions(world.beat("b", 2)) == [0, 1, 2, 3]


def test_a_member_that_lets_go_in_time_is_not_fenced(world: Any) -> None:
    world.beat("a", 0, topics=["t"], owned={}, rebalance_ms=10_000)
    world.advance(2000)
    world.enter_consumer("b")
    world.beat("a", 1)
    world.beat("a", 1, owned={"t": [0, 1]})
    world.advance(20_000)
    assert world.beat("a", 2).code_name == "NONE"


def test_targets_are_computed_once_in_an_interval(world: Any) -> None:
    world.enter_consumer("a")
    world.enter_consumer("b")
    for name in "cd":
        joined = world.enter_consumer(name)
        assert (joined.response.member_epoch, joined.response.heartbeat_interval_ms) == (2, 1000)
    assert world.state() == "Assigning"
    assert (world.group().epoch, world.group().assignment_epoch) == (4, 2)
    world.advance(1001)
    assert (world.group().epoch, world.group().assignment_epoch) == (4, 4)
    assert sorted(len(next(iter(each.values()))) for each in world.group().targets.values()) == [1, 1, 1, 1]


def test_a_group_that_was_empty_is_not_kept_waiting(world: Any) -> None:
    world.enter_consumer("a")
    world.beat("a", -1)
    assert partitions(world.enter_consumer("b")) == [0, 1, 2, 3]


def test_topics_that_grow_come_or_go_are_assigned_anew(world: Any) -> None:
    world.enter_consumer("a", ["t", "new"])
    for topics, expected in (({"t": 5}, 5), ({"t": 5, "new": 2}, 7), ({"new": 2}, 2)):
        world.advance(2000)
        world.set_topics(**topics)
        epoch = world.group().members["a"].epoch
        world.beat("a", epoch)
        member = world.group().members["a"]
        if member.revoking:
            world.beat("a", epoch, owned={"new": [0, 1]})
        assert sum(len(each) for each in world.group().members["a"].assigned.values()) == expected
    epoch = world.group().epoch
    world.set_topics(new=2, other=1)
    world.beat("a", world.group().members["a"].epoch)
    assert world.group().epoch == epoch


def test_an_append_that_fails_is_tried_with_the_next_heartbeat(world: Any) -> None:
    world.enter_consumer("a")
    world.advance(2000)
    world.set_topics(t=6)
    world.log.refusal = NotEnoughReplicas()
    assert world.beat("a", 1).code_name == "COORDINATOR_NOT_AVAILABLE"
    assert world.group().epoch == 1
    world.log.refusal = None
    assert partitions(world.beat("a", 1)) == [0, 1, 2, 3, 4, 5]


def test_what_the_log_takes_back_never_was(world: Any) -> None:
    world.enter_consumer("a")
    world.log.holds_commits = True
    offset = world.log.end_offset
    pending = world.enter_consumer("b")
    assert not pending.is_done
    world.take_back(offset, NotLeaderOrFollower())
    assert pending.code_name == "NOT_COORDINATOR"
    assert list(world.group().members) == ["a"]
    assert world.group().epoch == 1


def test_a_coordinator_that_takes_over_goes_on_where_the_other_stopped(world: Any) -> None:
    world.enter_consumer("a")
    world.advance(2000)
    world.enter_consumer("b")
    world.beat("a", 1)
    after = world.reload()
    assert after.state() == "Reconciling"
    assert partitions(after.beat("b", 2)) is None
    after.beat("a", 1, owned={"t": [0, 1]})
    assert partitions(after.beat("b", 2)) == [2, 3]
    once_more = after.reload()
    once_more.advance(46_000)
    assert list(once_more.group().members) == []


def test_a_revocation_is_still_watched_after_a_reload(world: Any) -> None:
    world.beat("a", 0, topics=["t"], owned={}, rebalance_ms=10_000)
    world.advance(2000)
    world.enter_consumer("b")
    world.beat("a", 1)
    after = world.reload()
    after.advance(11_000)
    assert list(after.group().members) == ["b"]


def test_a_large_group_s_target_is_computed_elsewhere(worlds: Any) -> None:
    world = worlds.World(topics={"t": coordination.OFFLOAD_SIZE_MIN})
    assert len(partitions(world.enter_consumer("a")) or ()) == coordination.OFFLOAD_SIZE_MIN
    world.advance(2000)
    joined = world.enter_consumer("b")
    assert joined.response.member_epoch == 1
    assert world.state() == "Assigning"
    assert world.run_jobs() == 1
    assert world.group().assignment_epoch == 2
    world.advance(2000)
    world.enter_consumer("c")
    world.beat("b", -1)
    assert world.run_jobs() == 1
    assert "b" not in world.group().targets
    world.advance(1001)
    world.run_jobs()
    assert world.group().assignment_epoch == world.group().epoch


def test_an_expression_is_looked_up_and_followed(world: Any) -> None:
    joined = world.enter_consumer("a", regex="t|v.*")
    assert (partitions(joined), joined.response.heartbeat_interval_ms) == ([], 1000)
    world.run_jobs()
    world.advance(1001)
    assert partitions(world.beat("a", 1)) == [0, 1, 2, 3]
    assert world.group().regexes["t|v.*"].topics == ("t",)
    world.set_topics(t=4, v1=1)
    world.beat("a", world.group().members["a"].epoch)
    assert world.run_jobs() == 0
    world.advance(10_000)
    world.beat("a", world.group().members["a"].epoch)
    assert world.run_jobs() == 1
    world.beat("a", world.group().members["a"].epoch)
    assert len(world.group().members["a"].assigned) == 2
    world.beat("a", world.group().members["a"].epoch, regex="u")
    world.run_jobs()
    assert list(world.group().regexes) == ["u"]


def test_expressions_are_looked_up_again_after_a_while(world: Any) -> None:
    world.enter_consumer("a", regex="t")
    world.run_jobs()
    for _ in range(20):
        world.advance(40_000)
        world.beat("a", world.group().members["a"].epoch)
        if world.jobs.waiting:
            break
    assert world.now_ms - 1_000_000 >= 600_000


def test_a_stored_assignor_that_is_not_there_any_more_is_not_asked_for(world: Any) -> None:
    world.enter_consumer("a")
    key = ConsumerGroupMemberMetadataKey("g", "a")
    value = ConsumerMember(member_id="a", topic_names=("t",), assignor="com.acme.Mine").metadata_value()
    world.shard.replay(GroupRecord(key, value), offset=0, producer_id=-1)
    assert world.group().members["a"].assignor == "com.acme.Mine"
    assert world.enter_consumer("b").code_name == "NONE"
    assert world.beat("a", 1).code_name == "NONE"
    assert world.described().assignor_name == "uniform"


def test_an_assignor_that_is_not_offered_any_more_has_no_votes(worlds: Any) -> None:
    world = worlds.World(consumer={"assignors": ("org.apache.kafka.coordinator.group.assignor.RangeAssignor",)})
    assert world.enter_consumer("a", assignor="uniform").code_name == "UNSUPPORTED_ASSIGNOR"
    assert world.enter_consumer("a", assignor="range").code_name == "NONE"
    assert world.described().assignor_name == "range"


def test_most_votes_choose_the_assignor(world: Any) -> None:
    world.enter_consumer("a", assignor="range")
    assert world.described().assignor_name == "range"
    world.enter_consumer("b", assignor="uniform")
    assert world.described().assignor_name == "uniform"
    world.enter_consumer("c", assignor="range")
    assert world.described().assignor_name == "range"
