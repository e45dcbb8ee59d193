from __future__ import annotations

import asyncio

from millbeck.client.addresses import Address
from millbeck.client.connection import Connection, ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.simulation import World
from millbeck.simulation.runs.quorum_node import PORT, QuorumNode, settings_of
from millbeck.wire.messages.quorum import BeginQuorumEpochRequest, BeginQuorumEpochResponse


def test_a_member_alone_leads_and_answers_who_asks() -> None:
    async def main(environment: Environment) -> None:
        node = QuorumNode(environment, settings_of(1, (1,), directory_id=b"1" * 16), node_id=1)
        serving = asyncio.ensure_future(node.serve())
        await node.driver.wait_caught_up()
        assert node.driver.is_active
        connection = await Connection.open(environment.network, Address("c1", PORT), ConnectionSettings())
        answer = await connection.request(
            BeginQuorumEpochRequest(cluster_id="another"), BeginQuorumEpochResponse, timeout_s=5
        )
        assert answer.error_code == 104
        await node.stop()
        await serving

    with World(1) as world:
        run = world.node("c1").start(main)

        async def scenario(environment: Environment) -> None:
            await run.wait()

        world.run(scenario, limit_s=30)
        assert run.error is None


def test_settings_say_who_votes() -> None:
    assert settings_of(2, (1, 2, 3), directory_id=b"2" * 16).can_vote
    observer = settings_of(4, (1, 2, 3), directory_id=b"4" * 16)
    assert (observer.can_vote, observer.listeners) == (False, ())
