from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from millbeck.server.share.settings import AutoOffsetReset, membership_settings, settings_of
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.share_member import (
    ShareMember,
    acquired,
    configure,
    create,
    produce,
    settled,
    share_harness,
)


def test_a_groups_settings_count_before_the_brokers_and_within_its_bounds() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        broker = harness.node.broker
        assert settings_of(broker, "g").lock_duration_ms == 2000
        await configure(
            client,
            "g",
            share_record_lock_duration_ms="20000",
            share_isolation_level="read_committed",
            share_auto_offset_reset="earliest",
            share_session_timeout_ms="50000",
        )
        found = settings_of(broker, "g")
        assert (found.lock_duration_ms, found.is_read_committed, found.reset) == (
            20_000,
            True,
            AutoOffsetReset("earliest"),
        )
        assert (found.delivery_count_limit, found.record_locks_max) == (5, 2000)
        assert membership_settings(broker)["g"].session_timeout_ms == 50_000

    share_harness().run(scenario)


def test_a_group_begins_at_the_end_at_the_beginning_or_so_long_ago() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        for seconds in (0, 100, 200):
            await produce(client, data=one_batch(b"%d" % seconds, timestamp=environment.clock.wall_ms()))
            await asyncio.sleep(100)
        assert harness.node is not None
        broker = harness.node.broker
        partition = broker.topics.led_partition(topic_id, 0)
        assert await AutoOffsetReset("earliest").offset_in(broker, partition) == 0
        assert await AutoOffsetReset("latest").offset_in(broker, partition) == 3
        assert await AutoOffsetReset("by_duration:PT250S").offset_in(broker, partition) == 1
        assert await AutoOffsetReset("by_duration:PT1S").offset_in(broker, partition) == 3
        await configure(client, "g", share_auto_offset_reset="by_duration:PT250S")
        member = ShareMember(client)
        await member.join("t")
        assert acquired(await settled(member, topic_id)) == [(1, 2, 1)]

    share_harness().run(scenario)
