"""What every coordinator has in common, shown with the groups' on a whole node."""

from __future__ import annotations

from typing import Any

from millbeck.coordinator.group.records import GroupRecord, group_tombstone
from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.wire.messages.topics import DeleteTopicsRequest, DeleteTopicState
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator


def test_a_coordinator_follows_the_topic_as_it_is_made_and_deleted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        broker = harness.node.broker
        (coordinator,) = broker.coordinators[:1]
        coordinator.partition_count = 99
        await find_coordinator(client, "g")
        assert coordinator.partition_count == 3
        assert sorted(coordinator._drivers) == [0, 1, 2]
        failures: list[Any] = []
        await client.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="__consumer_offsets")], timeout_ms=1000), 6)
        assert not coordinator._drivers
        coordinator.write("g", lambda _: Result(response=1), ResponseCallback(failures.append, failures.append))
        coordinator.read("g", lambda _, at: at, ResponseCallback(failures.append, failures.append))
        assert [type(each) for each in failures] == [errors.NotCoordinator] * 2

    BrokerHarness().run(scenario)


def test_what_is_written_to_all_reaches_every_shard() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        await find_coordinator(client, "g")
        coordinator = harness.node.broker.coordinators[0]
        seen: list[Any] = []

        def operation(shard: Any) -> Result[GroupRecord, None]:
            seen.append(shard)
            return Result(records=[group_tombstone("nobody")])

        coordinator.write_all(operation)
        assert seen == [driver.host.shard for driver in coordinator._drivers.values()]
        assert coordinator.read_all(lambda shard, at: [shard]) == seen
        assert [driver.host.written_offset for driver in coordinator._drivers.values()] == [1, 1, 1]

    BrokerHarness().run(scenario)
