"""The admin client itself: settings, time, and what is left when it closes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.admin import Admin, AdminConfig
from millbeck.client.errors import ClientClosed, NoBrokerReachable, RequestTimeout
from millbeck.kernel.errors import InvalidConfig
from millbeck.wire.messages.metadata import MetadataRequest
from tests.unit.client.fake_cluster import SILENCE, FakeCluster, simulate


def test_settings_may_be_parsed_already() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        config = AdminConfig.parse({"bootstrap.servers": cluster.bootstrap, "client.id": "me"})
        async with Admin(config, environment=cluster.environment) as admin:
            await admin.list_topics()
        assert cluster.asked(MetadataRequest)[0].client_id == "me"
        with pytest.raises(InvalidConfig, match=r"bootstrap\.servers"):
            Admin({"bootstrap.servers": "nowhere:"}, environment=cluster.environment)

    simulate(scenario)


def test_a_call_takes_no_longer_than_it_may() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.on(MetadataRequest, lambda call: SILENCE)
        loop = asyncio.get_running_loop()
        async with Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment) as admin:
            began = loop.time()
            with pytest.raises(RequestTimeout):
                await admin.list_topics(timeout_s=3)
            assert loop.time() - began <= 3.01

    simulate(scenario)


def test_a_cluster_that_is_not_there_is_waited_for_as_long_as_a_call_may_take() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.brokers[1].stop()
        loop = asyncio.get_running_loop()
        settings: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap, "default.api.timeout.ms": 5000}
        async with Admin(settings, environment=cluster.environment) as admin:
            with pytest.raises(NoBrokerReachable):
                await admin.list_topics()
            assert 3 <= loop.time() <= 6
            waiting = asyncio.ensure_future(admin.list_topics(timeout_s=60))
            await asyncio.sleep(10)
            await cluster.brokers[1].start()
            assert await waiting == {}

    simulate(scenario)


def test_one_connection_serves_many_calls() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with Admin({"bootstrap.servers": cluster.bootstrap}, environment=cluster.environment) as admin:
            await asyncio.gather(*(admin.list_topics() for _ in range(5)))
            for _ in range(5):
                await admin.list_topics()
            assert cluster.connection_count == 1
        with pytest.raises(ClientClosed):
            await admin.list_topics()
        await asyncio.sleep(1)
        assert cluster.connection_count == 0

    simulate(scenario)
