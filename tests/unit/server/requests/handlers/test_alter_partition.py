"""AlterPartition."""

from __future__ import annotations

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ClusterAuthorizationFailed, FencedLeaderEpoch, StaleBrokerEpoch
from millbeck.server.requests.handlers.broker_requests import handle_alter_partition
from millbeck.wire.messages.replicas import (
    AlterPartitionPartition,
    AlterPartitionRequest,
    AlterPartitionTopic,
    BrokerState,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, run_scenario
from tests.unit.server.harness.controller_requests import ask, broker_of


def altering(harness: BrokerHarness, topic_id: bytes, version: int, *, older: int = 0) -> AlterPartitionRequest:
    broker = broker_of(harness)
    partition = broker.quorum.image.topics.by_id[topic_id].partitions[0]
    asked = AlterPartitionPartition(
        partition_index=0,
        leader_epoch=partition.leader_epoch - older,
        new_isr=[1] if version == 2 else [],
        new_isr_with_epochs=[BrokerState(1, -1)] if version > 2 else [],
        partition_epoch=partition.partition_epoch,
    )
    epoch = broker.quorum.image.cluster.brokers[1].epoch
    return AlterPartitionRequest(1, epoch, [AlterPartitionTopic(topic_id, [asked])])


@pytest.mark.parametrize("version", [2, 3])
def test_every_version_answers_with_the_state_of_the_partition(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        answer = await ask(harness, handle_alter_partition, altering(harness, topic_id, version), version)
        (partition,) = answer.topics[0].partitions
        assert (answer.error_code, partition.error_code, partition.leader_id, partition.isr) == (0, 0, 1, [1])
        answer = await ask(harness, handle_alter_partition, altering(harness, topic_id, version, older=1), version)
        assert answer.topics[0].partitions[0].error_code == FencedLeaderEpoch.code

    run_scenario(scenario)


def test_a_process_that_is_gone_is_refused_as_a_whole() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = altering(harness, await create(client), 3)
        request.broker_epoch -= 1
        answer = await ask(harness, handle_alter_partition, request)
        assert (answer.error_code, answer.topics) == (StaleBrokerEpoch.code, [])
        deny(harness)
        answer = await ask(harness, handle_alter_partition, request)
        assert answer.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)
