"""OffsetForLeaderEpoch: where an epoch ended, for readers of the right epoch."""

from __future__ import annotations

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    FencedLeaderEpoch,
    KafkaStorageError,
    NotLeaderOrFollower,
    TopicAuthorizationFailed,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from millbeck.security.authorizer import Operation
from millbeck.server.requests.handlers.offset_for_leader_epoch import error_reply
from millbeck.wire.messages.log_offsets import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, partition_of, produce, run_scenario


def asking(epoch: int, *, current: int = -1, topic: str = "t", index: int = 0) -> OffsetForLeaderEpochRequest:
    partition = OffsetForLeaderPartition(index, current_leader_epoch=current, leader_epoch=epoch)
    return OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic, [partition])])


async def told(client: Client, request: OffsetForLeaderEpochRequest, version: int = 4) -> tuple[int, int, int]:
    """Error code, epoch and end offset."""
    (answer,) = (await client.ask(request, version)).topics[0].partitions
    assert answer.partition == request.topics[0].partitions[0].partition
    return answer.error_code, answer.leader_epoch, answer.end_offset


async def two_epochs(harness: BrokerHarness, client: Client) -> None:
    await create(client)
    partition_of(harness).lead(2, 1)
    await produce(client, b"a", b"b")
    partition_of(harness).lead(6, 2)
    await produce(client, b"c")


@pytest.mark.parametrize("version", [2, 3, 4])
def test_every_version_tells_the_largest_epoch_not_above_and_its_end(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await two_epochs(harness, client)
        for epoch, expected in ((2, (0, 2, 2)), (4, (0, 2, 2)), (6, (0, 6, 3)), (7, (0, -1, -1)), (-1, (0, -1, -1))):
            assert await told(client, asking(epoch), version) == expected

    run_scenario(scenario)


def test_readers_of_another_epoch_are_fenced() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await two_epochs(harness, client)
        assert await told(client, asking(2, current=6)) == (0, 2, 2)
        assert await told(client, asking(2, current=5)) == (FencedLeaderEpoch.code, -1, -1)
        assert await told(client, asking(2, current=7)) == (UnknownLeaderEpoch.code, -1, -1)

    run_scenario(scenario)


def test_what_is_not_there_or_not_allowed_or_broken_is_told_apart() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await two_epochs(harness, client)
        for request in (asking(2, topic="nowhere"), asking(2, index=4)):
            assert await told(client, request) == (UnknownTopicOrPartition.code, -1, -1)
        partition_of(harness).log.mark_offline("a test")
        assert (await told(client, asking(2)))[0] == KafkaStorageError.code
        deny(harness, Operation.DESCRIBE)
        for topic in ("t", "nowhere"):
            assert (await told(client, asking(2, topic=topic)))[0] == TopicAuthorizationFailed.code

    run_scenario(scenario)


def test_an_error_for_the_whole_is_said_for_every_partition() -> None:
    assert error_reply(None, 4, UnknownServerError()) is None
    answer = error_reply(asking(2), 4, UnknownServerError())
    assert answer is not None
    assert [(each.partition, each.error_code) for each in answer.topics[0].partitions] == [(0, -1)]


def test_only_the_leader_answers_and_followers_need_leave() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)

        async def asked(replica_id: int) -> int:
            request = OffsetForLeaderEpochRequest(
                replica_id=replica_id,
                topics=[OffsetForLeaderTopic("t", [OffsetForLeaderPartition(0, -1, leader_epoch=0)])],
            )
            (answer,) = (await client.ask(request, 4)).topics[0].partitions
            code: int = answer.error_code
            return code

        assert [await asked(replica_id) for replica_id in (-1, 2)] == [0, 0]
        deny(harness, Operation.CLUSTER_ACTION)
        assert [await asked(replica_id) for replica_id in (-1, 2)] == [0, TopicAuthorizationFailed.code]
        partition_of(harness).follow(2, 3, 3)
        assert await asked(-1) == NotLeaderOrFollower.code

    run_scenario(scenario)
