"""What a share coordinator serves to other brokers, on a whole node."""

from __future__ import annotations

from typing import Any

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import AllowAll, Operation, ResourceType
from millbeck.wire.messages.share_state import (
    DeleteShareGroupStatePartition,
    DeleteShareGroupStateRequest,
    DeleteStateData,
    InitializeShareGroupStatePartition,
    InitializeShareGroupStateRequest,
    InitializeStateData,
    ReadShareGroupStatePartition,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryPartition,
    ReadShareGroupStateSummaryRequest,
    ReadStateData,
    ReadStateSummaryData,
    StateBatch,
    WriteShareGroupStatePartition,
    WriteShareGroupStateRequest,
    WriteStateData,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import begin, share_harness


async def result(client: Client, request: Any, version: int = 0) -> Any:
    return (await client.ask(request, version)).results[0].partitions[0]


def reading(topic_id: bytes, leader_epoch: int) -> ReadShareGroupStateRequest:
    return ReadShareGroupStateRequest("h", [ReadStateData(topic_id, [ReadShareGroupStatePartition(0, leader_epoch)])])


def writing(topic_id: bytes, state_epoch: int = 3, leader_epoch: int = 5) -> WriteShareGroupStateRequest:
    partition = WriteShareGroupStatePartition(0, state_epoch, leader_epoch, 11, 2, [StateBatch(12, 13, 2, 1)])
    return WriteShareGroupStateRequest("h", [WriteStateData(topic_id, [partition])])


def test_state_is_initialised_written_read_and_deleted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, topic_id = await begin(harness, client, environment, count=0)
        beginning = InitializeShareGroupStateRequest(
            "h", [InitializeStateData(topic_id, [InitializeShareGroupStatePartition(0, 3, 10)])]
        )
        assert (await result(client, reading(topic_id, 5))).error_code == errors.InvalidRequest.code
        assert (await result(client, beginning)).error_code == 0
        assert (await result(client, writing(topic_id), 1)).error_code == 0
        found = await result(client, reading(topic_id, 6))
        assert (found.error_code, found.state_epoch, found.start_offset) == (0, 3, 11)
        assert [(each.first_offset, each.last_offset, each.delivery_state) for each in found.state_batches] == [
            (12, 13, 2)
        ]
        assert (await result(client, writing(topic_id), 1)).error_code == errors.FencedLeaderEpoch.code
        stale = writing(topic_id, state_epoch=2, leader_epoch=6)
        assert (await result(client, stale, 1)).error_code == errors.FencedStateEpoch.code
        summary = ReadShareGroupStateSummaryRequest(
            "h", [ReadStateSummaryData(topic_id, [ReadShareGroupStateSummaryPartition(0, -1)])]
        )
        told = await result(client, summary, 1)
        assert (told.start_offset, told.leader_epoch, told.delivery_complete_count) == (11, 6, 2)
        deleting = DeleteShareGroupStateRequest("h", [DeleteStateData(topic_id, [DeleteShareGroupStatePartition(0)])])
        assert (await result(client, deleting)).error_code == 0
        assert (await result(client, summary, 1)).start_offset == -1
        assert (await result(client, reading(bytes(16), 6))).error_code == errors.UnknownTopicOrPartition.code

    share_harness().run(scenario)


class NoCluster(AllowAll):
    def authorize(
        self, principal: object, host: str, operation: Operation, resource_type: ResourceType, name: str
    ) -> bool:
        return resource_type is not ResourceType.CLUSTER


def test_only_brokers_ask() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, topic_id = await begin(harness, client, environment, count=0)
        assert harness.node is not None
        harness.node.broker.authorizer = NoCluster()
        assert (await result(client, reading(topic_id, 1))).error_code == errors.ClusterAuthorizationFailed.code

    share_harness().run(scenario)
