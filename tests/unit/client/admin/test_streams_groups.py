"""Administration of streams groups, on a whole node in the simulator."""

from __future__ import annotations

from millbeck.client.admin import Admin
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import GroupIdNotFound
from millbeck.kernel.ids import TopicPartition
from millbeck.wire.messages.streams_groups import StreamsGroupHeartbeatRequest, Subtopology, Topology
from millbeck.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import find_coordinator


def test_streams_groups_are_described_by_tasks_and_by_partitions() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await find_coordinator(client, "g")
        await client.ask(CreateTopicsRequest(topics=[CreatableTopic("t", num_partitions=2, replication_factor=1)]), 7)
        topology = Topology(0, [Subtopology("0", ["t"])])
        joining = StreamsGroupHeartbeatRequest(
            "g", "m", 0, rebalance_timeout_ms=1000, topology=topology, process_id="p"
        )
        assert (await client.ask(joining, 0)).error_code == 0
        async with Admin({"bootstrap.servers": "n1:9092"}, environment=environment) as admin:
            described = await admin.describe_streams_groups(["g", "none"])
            assert isinstance(described.failed["none"], GroupIdNotFound)
        group = described.succeeded["g"]
        assert (group.state, group.epoch, group.assignment_epoch) == ("Stable", 2, 2)
        (member,) = group.members
        assert (member.process_id, member.epoch, member.assigned.active) == ("p", 2, {"0": (0, 1)})
        assert member.target == member.assigned
        (reader,) = group.with_partitions().members
        assert reader.assignment == (TopicPartition("t", 0), TopicPartition("t", 1))

    BrokerHarness(1, group_streams_initial_rebalance_delay_ms="0").run(scenario)
