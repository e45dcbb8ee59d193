from __future__ import annotations

import asyncio

from millbeck.coordinator.group.share.context import PartitionStart
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, FencedStateEpoch
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.share_member import begin, share_harness


def test_each_share_partition_has_its_outcome() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        _, topic_id = await begin(harness, client, environment)
        assert harness.node is not None
        state_initializer = harness.node.broker.state_initializer
        outcomes: list[dict[tuple[bytes, int], ApiError | None]] = []
        state_initializer.begin(
            "h", 5, [PartitionStart(topic_id, 0, 1), PartitionStart(topic_id, 1, 2)], outcomes.append
        )
        await asyncio.sleep(0.1)
        state_initializer.begin("h", 4, [PartitionStart(topic_id, 0, 1)], outcomes.append)
        state_initializer.delete("h", [(topic_id, 0), (topic_id, 7)], outcomes.append)
        kept: list[dict[str, ApiError]] = []
        state_initializer.before_deletion(["g", "h"], kept.append)
        await asyncio.sleep(0.1)
        assert outcomes[0] == {(topic_id, 0): None, (topic_id, 1): None}
        assert isinstance(outcomes[1][topic_id, 0], FencedStateEpoch)
        assert outcomes[2] == {(topic_id, 0): None, (topic_id, 7): None}
        assert kept == [{}]

    share_harness().run(scenario)
