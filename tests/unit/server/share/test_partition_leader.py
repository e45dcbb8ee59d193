"""A share partition on its leader, with everything around it."""

from __future__ import annotations

import asyncio

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    CoordinatorNotAvailable,
    FencedStateEpoch,
    InvalidRecordState,
    NotCoordinator,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from millbeck.server.share.partition_leader import client_error
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import ACCEPT, ShareMember, acquired, begin, produce, settled, share_harness


def test_consumers_are_told_errors_that_they_know() -> None:
    assert isinstance(client_error(FencedStateEpoch()), NotLeaderOrFollower)
    assert isinstance(client_error(NotCoordinator()), CoordinatorNotAvailable)
    assert isinstance(client_error(RequestTimedOut()), CoordinatorNotAvailable)
    assert isinstance(client_error(InvalidRecordState()), InvalidRecordState)


def test_what_was_accepted_stays_so_when_the_leader_is_started_anew() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        said = await member.acknowledge(topic_id, (0, 2, [ACCEPT]), (5, 6, [ACCEPT]))
        assert said.responses[0].partitions[0].error_code == 0
        harness.machine.power_loss()
        await harness.start()
        again = ShareMember(await harness.connect(environment))
        await asyncio.sleep(1)
        answer = await settled(again, topic_id)
        assert acquired(answer) == [(3, 4, 1), (7, 9, 1)]

    share_harness(**{"log.flush.interval.messages": "1"}).run(scenario)


def test_where_a_group_began_is_kept_for_the_next_leader() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment, count=0)
        await member.fetch(topic_id)
        await asyncio.sleep(0.5)
        await produce(client, b"a")
        harness.machine.crash()
        await harness.start()
        again = ShareMember(await harness.connect(environment))
        await asyncio.sleep(1)
        assert acquired(await settled(again, topic_id)) == [(0, 0, 1)]

    share_harness().run(scenario)


def test_a_state_that_was_set_anew_ends_what_was_before() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        assert harness.node is not None
        broker = harness.node.broker
        led = broker.shares.known("g", topic_id, 0)
        assert led is not None
        broker.state_initializer.begin(
            "g", 99, [type("B", (), {"topic_id": topic_id, "partition": 0, "start_offset": 4})()], lambda _: None
        )
        await asyncio.sleep(0.1)
        said = await member.acknowledge(topic_id, (0, 9, [ACCEPT]))
        assert said.responses[0].partitions[0].error_code == NotLeaderOrFollower.code
        assert broker.shares.known("g", topic_id, 0) is None
        assert acquired(await settled(member, topic_id)) == [(4, 9, 1)]

    share_harness().run(scenario)


def test_a_group_without_sessions_is_forgotten() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        member, topic_id = await begin(harness, client, environment)
        await settled(member, topic_id)
        assert harness.node is not None
        shares = harness.node.broker.shares
        assert len(shares.all()) == 1
        await member.fetch(topic_id, epoch=-1)
        await asyncio.sleep(0.5)
        assert shares.all() == []

    share_harness().run(scenario)
