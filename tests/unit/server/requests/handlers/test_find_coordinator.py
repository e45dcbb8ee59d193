"""FindCoordinator on a whole node."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.coordinator.partitioner import partition_for
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    ApiError,
    ClusterAuthorizationFailed,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    InvalidRequest,
    TransactionalIdAuthorizationFailed,
)
from millbeck.kernel.ids import uuid_text
from millbeck.security.authorizer import AllowAll, ResourceType
from millbeck.wire.messages.groups import FindCoordinatorRequest
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator


@pytest.mark.parametrize("version", range(7))
def test_every_version_finds_the_node_and_makes_the_topic(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        request = FindCoordinatorRequest()
        if version >= 4:
            request.coordinator_keys = ["g", "h"]
        else:
            request.key = "g"
        for expected_error in (CoordinatorNotAvailable.code, 0):
            response = await client.ask(request, version)
            found = response.coordinators if version >= 4 else [response]
            assert [one.error_code for one in found] == [expected_error] * len(found)
            await asyncio.sleep(0.5)
        if 1 <= version <= 3:
            assert response.error_message == "NONE"
        (broker,) = (await client.ask(MetadataRequest(topics=[]), 9)).brokers
        expected = (0, broker.node_id, broker.host, broker.port)
        assert [(one.error_code, one.node_id, one.host, one.port) for one in found] == [expected] * len(found)
        if version >= 4:
            assert [one.key for one in found] == ["g", "h"]
        topics = (await client.ask(MetadataRequest(topics=[MetadataRequestTopic(name="__consumer_offsets")]), 9)).topics
        assert (topics[0].is_internal, len(topics[0].partitions)) == (True, 3)

    BrokerHarness().run(scenario)


@pytest.mark.parametrize(("key_type", "refusal"), [(2, InvalidRequest), (9, InvalidRequest)])
def test_other_types_of_keys_are_refused(key_type: int, refusal: type[ApiError]) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        response = await client.ask(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"]), 6)
        one = response.coordinators[0]
        assert (one.error_code, one.node_id) == (refusal.code, -1)
        assert one.error_message
        single = await client.ask(FindCoordinatorRequest(key_type=key_type, key="k"), 3)
        assert (single.error_code, single.node_id) == (refusal.code, -1)

    BrokerHarness().run(scenario)


def test_transactional_ids_have_a_coordinator() -> None:
    class OnlyOne(AllowAll):
        def authorize(self, principal: Any, host: str, operation: Any, resource_type: Any, resource_name: str) -> bool:
            return resource_type is not ResourceType.TRANSACTIONAL_ID or resource_name == "mine"

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        harness.node.broker.authorizer = OnlyOne()
        await find_coordinator(client, "mine", key_type=1)
        response = await client.ask(FindCoordinatorRequest(key_type=1, coordinator_keys=["mine", "yours"]), 4)
        refused = TransactionalIdAuthorizationFailed.code
        assert [one.error_code for one in response.coordinators] == [0, refused]
        topic = harness.node.broker.image.topics.named("__transaction_state")
        assert topic is not None
        assert len(topic.partitions) == 50

    BrokerHarness(transaction_state_log_replication_factor="1").run(scenario)


SHARE_KEY = f"my:group:{uuid_text(bytes(range(16)))}:3"


def test_the_state_of_a_share_partition_has_a_coordinator() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find_coordinator(client, SHARE_KEY, key_type=2)
        keys = [SHARE_KEY, "g", "g:t:1", f"{SHARE_KEY}x", SHARE_KEY.replace("my:group", "")]
        response = await client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=keys), 6)
        assert [one.error_code for one in response.coordinators] == [0] + [InvalidRequest.code] * 4
        assert response.coordinators[0].node_id == harness.node.broker.node_id  # type: ignore[union-attr]
        asked = MetadataRequest(topics=[MetadataRequestTopic(name="__share_group_state")])
        (topic,) = (await client.ask(asked, 9)).topics
        assert (topic.is_internal, len(topic.partitions)) == (True, 50)
        older = await client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[SHARE_KEY]), 5)
        assert older.coordinators[0].error_code == InvalidRequest.code

    BrokerHarness(share_coordinator_state_topic_replication_factor="1").run(scenario)


def test_only_brokers_ask_about_share_keys_and_others_make_no_topic() -> None:
    class NoBroker(AllowAll):
        def authorize(self, principal: Any, host: str, operation: Any, resource_type: Any, resource_name: str) -> bool:
            return resource_type is not ResourceType.CLUSTER

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        harness.node.broker.authorizer = NoBroker()
        response = await client.ask(FindCoordinatorRequest(key_type=2, coordinator_keys=[SHARE_KEY]), 6)
        assert response.coordinators[0].error_code == ClusterAuthorizationFailed.code
        await asyncio.sleep(0.5)
        assert harness.node.broker.image.topics.named("__share_group_state") is None

    BrokerHarness(share_coordinator_state_topic_replication_factor="1").run(scenario)


def test_each_key_is_authorised_by_itself() -> None:
    class OnlyOne(AllowAll):
        def authorize(self, principal: Any, host: str, operation: Any, resource_type: Any, resource_name: str) -> bool:
            return resource_type is not ResourceType.GROUP or resource_name == "mine"

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        harness.node.broker.authorizer = OnlyOne()
        await find_coordinator(client, "mine")
        response = await client.ask(FindCoordinatorRequest(coordinator_keys=["mine", "yours"]), 4)
        assert [one.error_code for one in response.coordinators] == [0, GroupAuthorizationFailed.code]

    BrokerHarness().run(scenario)


def test_groups_are_spread_over_the_partitions_there_are() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find_coordinator(client)
        assert harness.node is not None
        groups = harness.node.broker.groups
        assert groups.partition_count == 3
        assert [groups.partition_for(f"g{index}") for index in range(9)] == [
            partition_for(f"g{index}", 3) for index in range(9)
        ]

    BrokerHarness().run(scenario)
