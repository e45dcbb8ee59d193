from __future__ import annotations

import asyncio

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import UnknownTopicId
from millbeck.server.share.partition_leader import SharePartitionLeaderState
from millbeck.wire.messages.topics import DeleteTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import acquired, begin, configure, settled, share_harness


def test_a_share_partition_is_made_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, topic_id = await begin(harness, client, environment)
        assert harness.node is not None
        shares = harness.node.broker.shares
        led = shares.led("g", topic_id, 0)
        assert shares.led("g", topic_id, 0) is led
        assert shares.known("h", topic_id, 0) is None
        with pytest.raises(UnknownTopicId):
            shares.led("g", bytes(16), 0)

    share_harness().run(scenario)


def test_settings_that_change_count_at_once() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        await configure(client, "g", share_record_lock_duration_ms="9000", share_heartbeat_interval_ms="6000")
        assert (await member.fetch(topic_id)).acquisition_lock_timeout_ms == 9000
        assert (await member.heartbeat()).heartbeat_interval_ms == 6000

    share_harness().run(scenario)


def test_a_deleted_topic_ends_its_share_partitions() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        assert harness.node is not None
        (led,) = harness.node.broker.shares.all()
        waiting = asyncio.ensure_future(member.fetch(topic_id, max_wait_ms=60_000))
        await asyncio.sleep(0.2)
        other = await harness.connect(environment)
        assert (await other.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)).responses[
            0
        ].error_code == 0
        answer = await waiting
        assert answer.responses[0].partitions[0].error_code != 0
        assert led.state is SharePartitionLeaderState.ENDED
        assert acquired(await member.fetch(topic_id, epoch=-1)) == []

    share_harness().run(scenario)
