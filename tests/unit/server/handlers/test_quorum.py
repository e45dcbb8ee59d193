"""DescribeQuorum and UpdateFeatures on a quorum of one."""

from __future__ import annotations

from typing import Any

import pytest
from asking import create, deny, in_house
from house import Client, House

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ClusterAuthorizationFailed,
    FeatureUpdateFailed,
    InvalidUpdateVersion,
    UnknownTopicOrPartition,
)
from millbeck.metadata.features import LATEST_METADATA_VERSION
from millbeck.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartition,
    DescribeQuorumRequestTopic,
)
from millbeck.wire.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest


def asking(topic: str = "__cluster_metadata", index: int = 0) -> DescribeQuorumRequest:
    return DescribeQuorumRequest(topics=[DescribeQuorumRequestTopic(topic, [DescribeQuorumRequestPartition(index)])])


@pytest.mark.parametrize("version", range(3))
def test_every_version_describes_the_one_voter(version: int) -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        assert house.node is not None
        await create(client)
        response = await client.ask(asking(), version)
        (topic,) = response.topics
        (partition,) = topic.partitions
        quorum = house.node.broker.quorum
        assert (response.error_code, partition.error_code, partition.leader_id) == (0, 0, 1)
        assert (partition.leader_epoch, partition.high_watermark) == (quorum.epoch, quorum.high_watermark)
        (voter,) = partition.current_voters
        assert (voter.replica_id, voter.log_end_offset) == (1, quorum.high_watermark)
        assert (voter.last_caught_up_timestamp > 0) == (version >= 1)
        assert partition.observers == []
        nodes = [(node.node_id, [each.port for each in node.listeners]) for node in response.nodes]
        assert nodes == ([(1, [9092])] if version >= 2 else [])

    in_house(scenario)


def test_there_is_one_quorum_only() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        await create(client)
        for request in (asking("t"), asking(index=1)):
            (partition,) = (await client.ask(request, 2)).topics[0].partitions
            assert partition.error_code == UnknownTopicOrPartition.code

    in_house(scenario)


def test_the_epoch_rises_with_every_start() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        epochs = []
        for _ in range(3):
            (partition,) = (await client.ask(asking(), 0)).topics[0].partitions
            epochs.append(partition.leader_epoch)
            house.machine.power_loss()
            await house.start()
            client = await house.connect(environment)
        assert epochs[0] < epochs[1] < epochs[2]

    in_house(scenario)


def updating(feature: str, level: int, *, validate_only: bool = False, **fields: Any) -> UpdateFeaturesRequest:
    return UpdateFeaturesRequest(
        feature_updates=[FeatureUpdateKey(feature, level, **fields)], validate_only=validate_only
    )


@pytest.mark.parametrize("version", range(3))
def test_every_version_says_what_would_be_possible_and_changes_nothing(version: int) -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        async def outcome(request: UpdateFeaturesRequest) -> int:
            response = await client.ask(request, version)
            if version >= 2:
                assert response.results == []
                code: int = response.error_code
                return code
            assert response.error_code == 0
            codes: list[int] = [each.error_code for each in response.results]
            return codes[0]

        assert await outcome(updating("metadata.version", LATEST_METADATA_VERSION)) == 0
        assert await outcome(updating("metadata.version", 99)) == InvalidUpdateVersion.code
        assert await outcome(updating("no.such", 1)) == InvalidUpdateVersion.code
        downgrade = {"allow_downgrade": True} if version == 0 else {"upgrade_type": 2}
        possible = updating("metadata.version", LATEST_METADATA_VERSION - 1, **downgrade)
        assert await outcome(possible) == FeatureUpdateFailed.code
        if version >= 1:
            possible.validate_only = True
            assert await outcome(possible) == 0
        assert house.node is not None
        assert house.node.broker.image.features.metadata_version == LATEST_METADATA_VERSION

    in_house(scenario)


def test_both_need_permission() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        deny(house)
        described = await client.ask(asking(), 2)
        assert (described.error_code, described.topics) == (ClusterAuthorizationFailed.code, [])
        response = await client.ask(updating("metadata.version", LATEST_METADATA_VERSION), 2)
        assert response.error_code == ClusterAuthorizationFailed.code

    in_house(scenario)
