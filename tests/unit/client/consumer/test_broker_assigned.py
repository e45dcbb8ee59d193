"""A member of a group in which the broker assigns, against a broker that the test plays."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.consumer import Consumer
from millbeck.kernel.errors import (
    FencedMemberEpoch,
    GroupAuthorizationFailed,
    NotCoordinator,
    UnknownMemberId,
    UnreleasedInstanceId,
)
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.consumer_groups import (
    ConsumerAssignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatTopicPartitions,
)
from millbeck.wire.messages.group_offsets import OffsetCommitRequest
from tests.unit.client.fake_cluster import CLOSE, Call, FakeCluster, simulate

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class Coordinator:
    """Gives out what the test says; remembers what it was asked."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.epoch = 1
        self.given: list[int] | None = [0, 1]
        self.errors: list[Any] = []
        cluster.add_topic("a", 2)
        cluster.on(ConsumerGroupHeartbeatRequest, self.answer)

    def answer(self, call: Call) -> Any:
        if self.errors:
            error = self.errors.pop(0)
            return error if error is CLOSE else ConsumerGroupHeartbeatResponse(error_code=error)
        response = ConsumerGroupHeartbeatResponse(
            member_id=call.message.member_id, member_epoch=self.epoch, heartbeat_interval_ms=1000
        )
        if self.given is not None:
            topic_id = self.cluster.topics["a"][0]
            response.assignment = ConsumerAssignment([ConsumerGroupHeartbeatTopicPartitions(topic_id, self.given)])
            self.given = None
        return response

    @property
    def requests(self) -> list[ConsumerGroupHeartbeatRequest]:
        return [call.message for call in self.cluster.asked(ConsumerGroupHeartbeatRequest)]


def open_consumer(cluster: FakeCluster, **settings: Any) -> Consumer:
    texts = {key.replace("_", "."): value for key, value in settings.items()}
    defaults: dict[str, Any] = {
        "bootstrap.servers": cluster.bootstrap,
        "group.id": "g",
        "group.protocol": "consumer",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    return Consumer(defaults | texts, environment=cluster.environment)


async def poll_until(consumer: Consumer, partitions: list[TopicPartition]) -> None:
    async with asyncio.timeout(60):
        while consumer.assignment != partitions:
            await consumer.poll(timeout_s=0.2)
    await consumer.poll(timeout_s=0.5)
    assert consumer.assignment == partitions


def test_a_member_joins_says_what_it_owns_and_leaves() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        async with open_consumer(cluster, group_remote_assignor="range", client_rack="r") as consumer:
            consumer.subscribe(["a"])
            await poll_until(consumer, [A0, A1])
            await asyncio.sleep(3)
        first, second, *others, last = coordinator.requests
        assert (first.member_epoch, first.subscribed_topic_names, first.topic_partitions) == (0, ["a"], [])
        assert (first.server_assignor, first.rack_id, first.rebalance_timeout_ms) == ("range", "r", 300_000)
        assert second.member_epoch == 1
        assert [topic.partitions for topic in second.topic_partitions or ()] == [[0, 1]]
        assert second.subscribed_topic_names is None
        assert second.rebalance_timeout_ms == -1
        assert others
        assert all(each.topic_partitions is None for each in others)
        assert last.member_epoch == -1
        assert len({each.member_id for each in coordinator.requests}) == 1

    simulate(scenario)


@pytest.mark.parametrize(
    ("instance", "leaves", "epoch"),
    [("i", None, -2), ("i", False, -2), ("i", True, -1), (None, None, -1), (None, True, -1), (None, False, 1)],
)
def test_closing_leaves_the_group_or_stays_as_the_program_says(
    instance: str | None, leaves: bool | None, epoch: int
) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        consumer = open_consumer(cluster, group_instance_id=instance)
        consumer.subscribe(["a"])
        await poll_until(consumer, [A0, A1])
        consumer.enforce_rebalance()
        await consumer.close(leaves_group=leaves)
        assert coordinator.requests[-1].member_epoch == epoch

    simulate(scenario)


def test_what_is_taken_away_is_given_up_before_the_broker_hears_of_it() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        events: list[Any] = []

        async def revoked(partitions: list[TopicPartition]) -> None:
            await asyncio.sleep(2)
            events.append((partitions, len([each for each in coordinator.requests if each.topic_partitions])))

        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], on_revoked=revoked)
            await poll_until(consumer, [A0, A1])
            coordinator.given = [0]
            await poll_until(consumer, [A0])
            assert events == [([A1], 1)]
            told = [each.topic_partitions for each in coordinator.requests if each.topic_partitions]
            assert [topic.partitions for topic in told[-1] or ()] == [[0]]

    simulate(scenario)


def test_a_fenced_member_has_lost_everything_and_starts_anew() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        lost: list[Any] = []
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"], on_lost=lost.append)
            await poll_until(consumer, [A0, A1])
            for code in (FencedMemberEpoch.code, UnknownMemberId.code):
                coordinator.errors.append(code)
                coordinator.epoch += 1
                coordinator.given = [1]
                await poll_until(consumer, [A1])
        assert lost == [[A0, A1], [A1]]
        assert [each.member_epoch for each in coordinator.requests].count(0) == 3

    simulate(scenario)


def test_errors_that_pass_are_waited_out_and_everything_is_said_again() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        async with open_consumer(cluster, group_instance_id="i") as consumer:
            coordinator.errors = [UnreleasedInstanceId.code, NotCoordinator.code]
            consumer.subscribe(["a"])
            await poll_until(consumer, [A0, A1])
            coordinator.errors = [CLOSE]
            before = len(coordinator.requests)
            await asyncio.sleep(5)
            again = next(each for each in coordinator.requests[before + 1 :])
            assert again.subscribed_topic_names == ["a"]
            assert [topic.partitions for topic in again.topic_partitions or ()] == [[0, 1]]
        assert coordinator.requests[-1].member_epoch == -2

    simulate(scenario)


def test_an_error_that_stays_reaches_the_program() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        coordinator.errors = [GroupAuthorizationFailed.code]
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            with pytest.raises(GroupAuthorizationFailed):
                await poll_until(consumer, [A0])

    simulate(scenario)


def test_a_pattern_is_matched_by_the_broker() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(pattern="a.*")
            await poll_until(consumer, [A0, A1])
            consumer.subscribe(["a"])
            await consumer.poll(timeout_s=3)
        first = coordinator.requests[0]
        assert (first.subscribed_topic_names, first.subscribed_topic_regex) == ([], "a.*")
        changed = next(each for each in coordinator.requests if each.subscribed_topic_names)
        assert (changed.subscribed_topic_names, changed.subscribed_topic_regex) == (["a"], "")

    simulate(scenario)


def test_a_program_that_does_not_poll_leaves() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        async with open_consumer(cluster, max_poll_interval_ms=5000) as consumer:
            consumer.subscribe(["a"])
            await poll_until(consumer, [A0, A1])
            await asyncio.sleep(8)
            assert coordinator.requests[-1].member_epoch == -1
            coordinator.given = [0]
            await poll_until(consumer, [A0])

    simulate(scenario)


def test_leaving_for_lack_of_polls_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        async with open_consumer(cluster, max_poll_interval_ms=5000) as consumer:
            consumer.subscribe(["a"])
            await poll_until(consumer, [A0, A1])
            request_count = len(coordinator.requests)
            await asyncio.sleep(60)
            assert [record.message for record in caplog.records if "left group" in record.message] == [
                "left group g: no poll within max.poll.interval.ms"
            ]
            assert sum(request.member_epoch == -1 for request in coordinator.requests[request_count:]) == 1

    simulate(scenario)


def test_commits_carry_the_member_s_epoch() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        coordinator = Coordinator(cluster)
        coordinator.epoch = 7
        async with open_consumer(cluster) as consumer:
            consumer.subscribe(["a"])
            await poll_until(consumer, [A0, A1])
            await consumer.commit({A0: 3})
        request = cluster.asked(OffsetCommitRequest)[-1].message
        assert request.generation_id_or_member_epoch == 7
        assert request.member_id == coordinator.requests[0].member_id

    simulate(scenario)
