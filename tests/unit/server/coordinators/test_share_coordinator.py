from __future__ import annotations

import asyncio

from millbeck.coordinator.share.shard import ShareKey
from millbeck.kernel.environment import Environment
from millbeck.server.coordinators.share_coordinator import key_text
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import ACCEPT, ShareMember, acquired, begin, produce, settled, share_harness


def test_a_key_is_as_find_coordinator_has_it() -> None:
    assert key_text(ShareKey("g", bytes(15) + b"\x01", 7)) == "g:AAAAAAAAAAAAAAAAAAAAAQ:7"


def test_the_beginning_of_the_log_goes_when_it_is_needless_and_nothing_is_lost() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=0)
        await member.fetch(topic_id)
        for number in range(12):
            await produce(client, b"%d" % number)
            answer = await settled(member, topic_id)
            for first, last, _ in acquired(answer):
                await member.acknowledge(topic_id, (first, last, [ACCEPT]))
        assert harness.node is not None
        driver = harness.node.broker.share_state
        assert driver.write_count() >= 12
        assert driver.shard_counts()["active"] == 3
        assert driver.prune() > 0
        assert driver.prune() == 0
        harness.machine.crash()
        await harness.start()
        again = ShareMember(await harness.connect(environment))
        await asyncio.sleep(1)
        await again.fetch(topic_id)
        await asyncio.sleep(0.5)
        assert acquired(await again.fetch(topic_id)) == [], "everything was accepted"
        await produce(again.client, b"new")
        assert acquired(await again.fetch(topic_id)) == [(12, 12, 1)]

    share_harness(**{"share.coordinator.snapshot.update.records.per.snapshot": "5"}).run(scenario)
