"""DescribeQuorum and UpdateFeatures on a quorum of one."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    InvalidUpdateVersion,
    UnknownTopicOrPartition,
)
from millbeck.metadata.features import LATEST_METADATA_VERSION
from millbeck.wire.messages.nodes import FeatureUpdateKey, UpdateFeaturesRequest
from millbeck.wire.messages.quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, deny, run_scenario


def asking(topic: str = "__cluster_metadata", index: int = 0) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(topics=[DescribeQuorumRequestTopic(topic, [DescribeQuorumRequestPartition(index)])])


@pytest.mark.parametrize("version", range(3))
def test_every_version_describes_the_one_voter(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await create(client)
        response = await client.ask(asking(), version)
        (topic,) = response.topics
        (partition,) = topic.partitions
        quorum = harness.node.broker.quorum
        assert (response.error_code, partition.error_code, partition.leader_id) == (0, 0, 1)
        assert (partition.leader_epoch, partition.high_watermark) == (quorum.epoch, quorum.high_watermark)
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, quorum.high_watermark)
        assert (voter.last_caught_up_timestamp > 0) == (version >= 1)
        assert partition.observers == []
        nodes = [(node.node_id, [each.port for each in node.listeners]) for node in response.nodes]
        assert nodes == ([(1, [9092])] if version >= 2 else [])

    run_scenario(scenario)


def test_there_is_one_quorum_only() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for request in (asking("t"), asking(index=1)):
            (partition,) = (await client.ask(request, 2)).topics[0].partitions
            assert partition.error_code == UnknownTopicOrPartition.code

    run_scenario(scenario)


def test_the_epoch_rises_with_every_start() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        epochs = []
        for _ in range(3):
            (partition,) = (await client.ask(asking(), 0)).topics[0].partitions
            epochs.append(partition.leader_epoch)
            harness.machine.power_loss()
            await harness.start()
            client = await harness.connect(environment)
        assert epochs[0] < epochs[1] < epochs[2]

    run_scenario(scenario)


def updating(feature: str, level: int, *, validate_only: bool = False, **fields: Any) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature, level, **fields)], validate_only=validate_only
    )


@pytest.mark.parametrize("version", range(3))
def test_every_version_changes_what_can_be_changed(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        async def outcome(request: UpdateFeaturesRequest) -> int:
            response = await client.ask(request, version)
            code: int = response.error_code
            assert len(response.results) == (1 if version < 2 and code == 0 else 0)
            return code

        assert await outcome(updating("metadata.version", LATEST_METADATA_VERSION)) == 0
        assert await outcome(updating("metadata.version", 99)) == InvalidUpdateVersion.code
        assert await outcome(updating("no.such", 1)) == InvalidUpdateVersion.code
        downgrade = {"allow_downgrade": True} if version == 0 else {"upgrade_type": 2}
        lossy = updating("metadata.version", LATEST_METADATA_VERSION - 1, **downgrade)
        assert await outcome(lossy) == InvalidUpdateVersion.code
        assert harness.node is not None
        feature = "eligible.leader.replicas.version"
        assert harness.node.broker.image.features.level(feature) == 1
        if version >= 1:
            assert await outcome(updating(feature, 0, validate_only=True, **downgrade)) == 0
            assert harness.node.broker.image.features.level(feature) == 1
        assert await outcome(updating(feature, 0, **downgrade)) == 0
        assert harness.node.broker.image.features.level(feature) == 0
        assert await outcome(updating(feature, 1)) == 0
        features = harness.node.broker.image.features
        assert (features.metadata_version, features.level(feature)) == (LATEST_METADATA_VERSION, 1)

    run_scenario(scenario)


def test_both_need_permission() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        deny(harness)
        described = await client.ask(asking(), 2)
        assert (described.error_code, described.topics) == (ClusterAuthorizationFailed.code, [])
        response = await client.ask(updating("metadata.version", LATEST_METADATA_VERSION), 2)
        assert response.error_code == ClusterAuthorizationFailed.code

    run_scenario(scenario)
