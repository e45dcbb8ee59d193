from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import Operation
from millbeck.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millbeck.wire.messages.quotas import AlterClientQuotasEntry, AlterClientQuotasRequest, EntityData, OpData
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, produce, run_scenario
from tests.unit.server.harness.secured import allow, connect_as, run_secured


def test_denials_and_what_is_remembered_are_seen() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await allow(client, Operation.READ)
        alice = await connect_as(harness, environment)
        for name in ("t", "other", "other"):
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
            await alice.ask(request, 9)
        assert harness.node is not None
        page = harness.node.registry.render()
        assert "kafka_server_authorizer_metrics_acls_total_count 1" in page
        assert "kafka_server_authorizer_metrics_authorization_denied_total 1" in page
        assert "millbeck_authorizer_decisions_remembered 2" in page

    run_secured(scenario)


def test_throttled_clients_are_seen() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert harness.node is not None
        assert "millbeck_quota_throttled_requests_total 0" in harness.node.registry.render()
        limit = AlterClientQuotasEntry([EntityData("user", None)], [OpData("producer_byte_rate", 100.0)])
        await client.ask(AlterClientQuotasRequest([limit]), 1)
        await asyncio.sleep(0.1)
        await produce(client, bytes(3000))
        page = harness.node.registry.render()
        assert "millbeck_quota_throttled_requests_total 1" in page
        assert "millbeck_quota_muted_connections 1" in page
        await asyncio.sleep(60)
        assert "millbeck_quota_muted_connections 0" in harness.node.registry.render()

    run_scenario(scenario)
