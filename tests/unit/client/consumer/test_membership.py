"""A member of a group: joining, staying, being thrown out, leaving. Whole groups meet on a simulated node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.consumer import Consumer
from millbeck.client.errors import RequestTimeout
from millbeck.client.group_protocol import decode_subscription, encode_assignment
from millbeck.kernel.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    InvalidRequest,
    NotCoordinator,
    RebalanceInProgress,
    UnknownMemberId,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.classic_groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from millbeck.wire.messages.groups import FindCoordinatorRequest
from tests.unit.client.fake_cluster import CLOSE, SILENCE, Call, FakeCluster, later, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Events:
    def __init__(self) -> None:
        self.seen: list[tuple[str, list[TopicPartition]]] = []

    def callbacks(self) -> dict[str, Any]:
        return {
            name: lambda partitions, name=name: self.seen.append((name[3:], partitions))
            for name in ("on_assigned", "on_revoked", "on_lost")
        }


def open_consumer(cluster: FakeCluster, **settings: Any) -> Consumer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    defaults: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 1000,
    }
    return Consumer(defaults | texts, environment=cluster.environment)


async def joined(consumer: Consumer, count: int) -> None:
    async with asyncio.timeout(120):
        while len(consumer.assignment) != count:
            await consumer.poll(timeout_s=0.5)
    assert len(consumer.assignment) == count


def test_a_new_member_is_given_an_id_and_joins_with_it() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_consumer(cluster, max_poll_interval_ms=60_000) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)
        first, second = (call.message for call in cluster.asked(JoinGroupRequest))
        assert (first.member_id, second.member_id) == ("", "m1")
        assert (second.session_timeout_ms, second.rebalance_timeout_ms) == (10_000, 60_000)
        assert [protocol.name for protocol in second.protocols] == ["range", "cooperative-sticky"]
        assert decode_subscription(second.protocols[0].metadata).topics == ["a"]
        (sync,) = (call.message for call in cluster.asked(SyncGroupRequest))
        assert (sync.generation_id, sync.protocol_name, sync.protocol_type) == (1, "range", "consumer")

    simulate(scenario)


@pytest.mark.parametrize("highest", [0, 3, 5, 9])
def test_joining_works_in_every_version(highest: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        cluster.limit(JoinGroupRequest, 0, highest)
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)

    simulate(scenario)


def test_heartbeats_go_on_without_the_program() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 1)
            before = len(cluster.asked(HeartbeatRequest))
            await asyncio.sleep(10)
            assert 8 <= len(cluster.asked(HeartbeatRequest)) - before <= 11
            beat = cluster.asked(HeartbeatRequest)[-1].message
            assert (beat.group_id, beat.member_id, beat.generation_id) == ("g", "m1", 1)

    simulate(scenario)


def test_a_member_is_heard_of_before_the_program_polls_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            assert await consumer.poll(timeout_s=0) == {}
            await asyncio.sleep(5)
            assert consumer.assignment == []
            assert len(cluster.asked(HeartbeatRequest)) >= 4
            await joined(consumer, 2)
            assert len(cluster.asked(JoinGroupRequest)) == 2

    simulate(scenario)


def test_what_was_given_and_lost_before_the_program_polled_is_not_taken_over() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            cluster.next(HeartbeatRequest, heartbeat_error(UnknownMemberId))
            assert await consumer.poll(timeout_s=0) == {}
            await asyncio.sleep(5)
            await joined(consumer, 2)
            assert [name for name, _ in events.seen] == ["assigned"]
            assert len(cluster.asked(JoinGroupRequest)) == 4

    simulate(scenario)


def test_a_commit_in_a_hurry_does_not_disturb_joining() -> None:
    """Both go over one connection, and the group's meeting holds it."""

    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_consumer(cluster, enable_auto_commit=False) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)
            cluster.next(HeartbeatRequest, heartbeat_error(RebalanceInProgress))
            cluster.next(JoinGroupRequest, later(5))
            await asyncio.sleep(2)
            await consumer.poll(timeout_s=0)
            await asyncio.sleep(0.5)
            with pytest.raises(RequestTimeout):
                await consumer.commit({A0: 1}, timeout_s=1)
            joins = len(cluster.asked(JoinGroupRequest))
            await joined(consumer, 2)
            assert len(cluster.asked(JoinGroupRequest)) == joins

    simulate(scenario)


def heartbeat_error(error: Any) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error.code)


def test_a_rebalance_takes_everything_away_and_gives_it_back() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            cluster.next(HeartbeatRequest, heartbeat_error(RebalanceInProgress))
            await asyncio.sleep(2)
            assert len(events.seen) == 1, "partitions change hands inside poll only"
            await consumer.poll(timeout_s=1)
            assert [name for name, _ in events.seen] == ["assigned", "revoked", "assigned"]
            assert cluster.asked(JoinGroupRequest)[-1].message.member_id == "m1"

    simulate(scenario)


def test_a_cooperative_member_keeps_its_partitions_through_a_rebalance() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster, partition_assignment_strategy="cooperative-sticky") as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            cluster.next(HeartbeatRequest, heartbeat_error(RebalanceInProgress))
            await asyncio.sleep(2)
            await consumer.poll(timeout_s=1)
            assert events.seen == [("assigned", [A0, A1]), ("assigned", [])]
            told = decode_subscription(cluster.asked(JoinGroupRequest)[-1].message.protocols[0].metadata)
            assert told.owned_partitions[0].partitions == [0, 1]
            assert told.generation_id == 1

    simulate(scenario)


def test_a_cooperative_member_gives_up_what_is_taken_from_it_and_joins_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster, partition_assignment_strategy="cooperative-sticky") as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            cluster.on(SyncGroupRequest, lambda call: SyncGroupResponse(assignment=encode_assignment([A0])))
            cluster.next(HeartbeatRequest, heartbeat_error(RebalanceInProgress))
            await asyncio.sleep(2)
            await consumer.poll(timeout_s=3)
            assert events.seen == [("assigned", [A0, A1]), ("revoked", [A1]), ("assigned", []), ("assigned", [])]
            owned = [
                decode_subscription(call.message.protocols[0].metadata).owned_partitions
                for call in cluster.asked(JoinGroupRequest)[2:]
            ]
            assert [entry[0].partitions for entry in owned] == [[0, 1], [0]]

    simulate(scenario)


@pytest.mark.parametrize("error", [UnknownMemberId, IllegalGeneration])
def test_a_member_thrown_out_loses_its_partitions_and_joins_anew(error: Any) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            cluster.next(HeartbeatRequest, heartbeat_error(error))
            await asyncio.sleep(2)
            await joined(consumer, 2)
            await consumer.poll(timeout_s=1)
            assert [name for name, _ in events.seen] == ["assigned", "lost", "assigned"]
            assert cluster.asked(JoinGroupRequest)[2].message.member_id == ""
            assert not cluster.committed

    simulate(scenario)


def test_a_coordinator_that_is_silent_for_the_session_s_length_is_given_up() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            cluster.on(HeartbeatRequest, lambda call: heartbeat_error(CoordinatorNotAvailable))
            await asyncio.sleep(14)
            cluster.on(HeartbeatRequest, None)
            await joined(consumer, 2)
            await consumer.poll(timeout_s=1)
            assert [name for name, _ in events.seen] == ["assigned", "lost", "assigned"]

    simulate(scenario)


def test_a_coordinator_that_moved_is_found_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)

            def moved(call: Call) -> HeartbeatResponse:
                cluster.coordinator_id = 2
                return heartbeat_error(NotCoordinator) if call.node_id == 1 else HeartbeatResponse()

            cluster.on(HeartbeatRequest, moved)
            await asyncio.sleep(5)
            await consumer.poll(timeout_s=1)
            assert cluster.asked(HeartbeatRequest)[-1].node_id == 2
            assert [name for name, _ in events.seen] == ["assigned"]

    simulate(scenario, brokers=2)


def test_a_static_member_whose_name_is_taken_ends_with_an_error() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster, group_instance_id="i") as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            cluster.next(HeartbeatRequest, heartbeat_error(FencedInstanceId))
            await asyncio.sleep(2)
            for _ in range(2):
                with pytest.raises(FencedInstanceId):
                    await consumer.poll(timeout_s=1)
            assert [name for name, _ in events.seen] == ["assigned", "lost"]

    simulate(scenario)


def test_a_static_member_does_not_say_goodbye() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_consumer(cluster, group_instance_id="i") as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)
        assert not cluster.asked(LeaveGroupRequest)
        assert all(call.message.group_instance_id == "i" for call in cluster.asked(JoinGroupRequest))
        assert len(cluster.asked(JoinGroupRequest)) == 1

    simulate(scenario)


@pytest.mark.parametrize(
    ("instance", "leaves", "is_told"), [("i", True, True), ("i", None, False), (None, False, False), (None, None, True)]
)
def test_closing_leaves_the_group_or_stays_as_the_program_says(
    instance: str | None, leaves: bool | None, is_told: bool
) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        consumer = open_consumer(cluster, group_instance_id=instance)
        consumer.subscribe(["a"])
        await joined(consumer, 2)
        await consumer.close(leaves_group=leaves)
        told = [
            member.group_instance_id for call in cluster.asked(LeaveGroupRequest) for member in call.message.members
        ]
        assert told == ([instance] if is_told else [])

    simulate(scenario)


def test_closing_takes_no_longer_than_its_timeout() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        consumer = open_consumer(cluster)
        consumer.subscribe(["a"])
        await joined(consumer, 2)
        cluster.on(LeaveGroupRequest, lambda call: SILENCE)
        began_s = asyncio.get_running_loop().time()
        await consumer.close(2)
        assert asyncio.get_running_loop().time() - began_s < 2.1

    simulate(scenario)


def test_the_program_can_have_the_group_rebalance() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_consumer(cluster) as consumer:
            with pytest.raises(InvalidRequest, match="subscription"):
                consumer.enforce_rebalance()
            consumer.subscribe(["a"])
            await joined(consumer, 2)
            consumer.enforce_rebalance("racks have changed")
            await consumer.poll(timeout_s=1)
            await joined(consumer, 2)
        assert [call.message.reason for call in cluster.asked(JoinGroupRequest)][-1] == "racks have changed"

    simulate(scenario)


@pytest.mark.parametrize("highest", [2, 5])
def test_leaving_works_in_every_form(highest: int) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        cluster.limit(LeaveGroupRequest, 0, highest)
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)
        (call,) = cluster.asked(LeaveGroupRequest)
        assert (call.message.member_id or call.message.members[0].member_id) == "m1"

    simulate(scenario)


def test_a_program_that_does_not_poll_leaves_its_group() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        events = Events()
        async with open_consumer(cluster, max_poll_interval_ms=5000) as consumer:
            consumer.subscribe(["a"], **events.callbacks())
            await joined(consumer, 2)
            await asyncio.sleep(8)
            assert len(cluster.asked(LeaveGroupRequest)) == 1
            beats = len(cluster.asked(HeartbeatRequest))
            await asyncio.sleep(5)
            assert len(cluster.asked(HeartbeatRequest)) == beats
            await joined(consumer, 2)
            await consumer.poll(timeout_s=1)
            assert [name for name, _ in events.seen] == ["assigned", "lost", "assigned"]

    simulate(scenario)


@pytest.mark.parametrize("error", [GroupMaxSizeReached, InconsistentGroupProtocol, FencedInstanceId])
def test_a_final_refusal_is_raised(error: Any) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(JoinGroupRequest, lambda call: JoinGroupResponse(error_code=error.code, protocol_name=""))
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            with pytest.raises(error):
                await joined(consumer, 1)

    simulate(scenario)


def test_joining_survives_whatever_passes() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        cluster.next(FindCoordinatorRequest, CLOSE)
        cluster.next(
            JoinGroupRequest,
            CLOSE,
            JoinGroupResponse(error_code=NotCoordinator.code, protocol_name=""),
            JoinGroupResponse(error_code=UnknownMemberId.code, protocol_name=""),
        )
        cluster.next(
            SyncGroupRequest,
            SyncGroupResponse(error_code=RebalanceInProgress.code),
            SyncGroupResponse(error_code=IllegalGeneration.code),
            CLOSE,
        )
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)

    simulate(scenario)


def test_an_assignment_that_cannot_be_read_is_an_error() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a")
        cluster.on(SyncGroupRequest, lambda call: SyncGroupResponse(assignment=b"\0"))
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            with pytest.raises(InconsistentGroupProtocol, match="cannot be read"):
                await joined(consumer, 1)

    simulate(scenario)


def test_the_leader_calls_for_a_rebalance_when_partitions_are_added() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        async with open_consumer(cluster, metadata_max_age_ms=2000) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)
            _, partitions = cluster.topics["a"]
            partitions[2] = partitions[3] = partitions[0]
            await joined(consumer, 4)

    simulate(scenario)


def test_subscribing_again_joins_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)
        cluster.add_topic("b", 3)
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            await joined(consumer, 2)
            consumer.subscribe(["b"])
            await joined(consumer, 3)
            assert {partition.topic for partition in consumer.assignment} == {"b"}

    simulate(scenario)


def test_a_leader_that_is_told_to_skip_assigns_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.add_topic("a", 2)

        def skip(call: Call) -> JoinGroupResponse:
            response = cluster.join_group(call)
            response.skip_assignment = True
            return response

        cluster.on(JoinGroupRequest, skip)
        async with open_consumer(cluster, group_instance_id="i") as consumer:
            consumer.subscribe(["a"])
            await consumer.poll(timeout_s=2)
        assert not cluster.asked(SyncGroupRequest)[0].message.assignments

    simulate(scenario)
