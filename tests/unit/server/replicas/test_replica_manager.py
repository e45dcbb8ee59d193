"""A node's partitions follow the metadata into their roles, and out of them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.addresses import Address
from millbeck.controller.result import Result
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import (
    NotController,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
)
from millbeck.metadata.image import ResourceType
from millbeck.metadata.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionChangeRecord,
    RecordedEndpoint,
    RegisterBrokerRecord,
)
from millbeck.replication.selector import RACK_AWARE_SELECTOR
from millbeck.server.loop import tasks
from millbeck.server.replicas.replica_manager import ReplicaManager, no_controller
from millbeck.wire.messages.fetch import ReplicaState
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import create, fetch, partition_of, produce, results, run_scenario


def replication_of(harness: BrokerHarness) -> ReplicaManager:
    assert harness.node is not None
    return harness.node.broker.replication


async def decide(harness: BrokerHarness, *records: MetadataRecord) -> None:
    """Put records into the metadata log, whatever the controller thinks of them."""
    assert harness.node is not None
    await harness.node.broker.quorum.submit(lambda image: Result(response=None, records=list(records)))


async def register(
    harness: BrokerHarness, broker_id: int = 2, *, rack: str | None = None, is_fenced: bool = False
) -> None:
    endpoint = RecordedEndpoint(name="PLAINTEXT", host=f"n{broker_id}", port=9092)
    record = RegisterBrokerRecord(
        broker_id=broker_id, incarnation_id=bytes(16), end_points=[endpoint], rack=rack, fenced=is_fenced
    )
    await decide(harness, record)


def change(topic_id: bytes, **fields: Any) -> PartitionChangeRecord:
    replicas = fields.get("replicas")
    if replicas is not None:
        fields["directories"] = [bytes(15) + b"\x01"] * len(replicas)
    return PartitionChangeRecord(partition_id=0, topic_id=topic_id, **fields)


async def replicate(harness: BrokerHarness, client: Client, isr: tuple[int, ...] = (1, 2), **configs: Any) -> bytes:
    await register(harness)
    topic_id = await create(client, **configs)
    await decide(harness, change(topic_id, replicas=[1, 2], isr=list(isr)))
    return topic_id


async def ask_to_produce(client: Client, value: bytes, topic_id: bytes, *, timeout_ms: int = 1000) -> Any:
    """The whole reply of a produce with acks=all, by topic id."""
    data = PartitionProduceData(0, one_batch(value))
    request = ProduceRequest(
        acks=-1, timeout_ms=timeout_ms, topic_data=[TopicProduceData(topic_id=topic_id, partition_data=[data])]
    )
    return await client.ask(request, 13)


async def produce_error(client: Client, value: bytes, topic_id: bytes, *, timeout_ms: int = 1000) -> int:
    (answer,) = (await ask_to_produce(client, value, topic_id, timeout_ms=timeout_ms)).responses[0].partition_responses
    code: int = answer.error_code
    return code


async def follow_along(harness: BrokerHarness, client: Client, topic_id: bytes, offset: int) -> None:
    """One fetch of broker 2."""
    request = fetch((0, offset), topic_id=topic_id)
    request.replica_state = ReplicaState(2, -1)
    assert results(await client.ask(request, 17))[0].error_code == 0


def test_a_leader_takes_over_its_replicas_from_the_image() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await replicate(harness, client)
        partition = partition_of(harness)
        assert partition.replicas is not None
        assert (partition.replicas.replicas, partition.replicas.isr) == ((1, 2), (1, 2))
        assert (partition.is_leader, partition.leader_epoch, partition.partition_epoch) == (True, 0, 1)

    run_scenario(scenario)


def test_acks_all_waits_for_the_other_replica_and_not_longer_than_it_may() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client)
        assert await produce_error(client, b"alone", topic_id) == RequestTimedOut.code
        other = await harness.connect(environment)
        producing = asyncio.ensure_future(produce_error(client, b"x", topic_id, timeout_ms=5000))
        await asyncio.sleep(0.5)
        assert not producing.done()
        await follow_along(harness, other, topic_id, 1)
        await asyncio.sleep(0.5)
        assert not producing.done(), "it has the first of the two"
        await follow_along(harness, other, topic_id, 2)
        assert await producing == 0

    run_scenario(scenario)


@pytest.mark.parametrize("turn_seconds", [tasks.TURN_SECONDS, -1.0], ids=["in one turn", "in many"])
def test_a_minimum_that_comes_with_a_smaller_set_counts_for_it(
    monkeypatch: pytest.MonkeyPatch, turn_seconds: float
) -> None:
    """By the old one the leader alone would commit what who has left, and may lead again, does not have."""
    monkeypatch.setattr(tasks, "TURN_SECONDS", turn_seconds)

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client, min_insync_replicas="1")
        producing = asyncio.ensure_future(produce_error(client, b"x", topic_id, timeout_ms=5000))
        await asyncio.sleep(0.5)
        partition = partition_of(harness)
        assert partition.replicas is not None
        partition.replicas.followers[2].caught_up_ms -= 60_000
        minimum = ConfigRecord(
            resource_type=ResourceType.TOPIC, resource_name="t", name="min.insync.replicas", value="2"
        )
        await decide(harness, minimum, change(topic_id, isr=[1]))
        assert await producing == NotEnoughReplicasAfterAppend.code
        assert partition.high_watermark == 0

    run_scenario(scenario)


def test_too_few_in_sync_replicas_are_refused_before_and_after_the_append() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client, min_insync_replicas="2")
        producing = asyncio.ensure_future(produce_error(client, b"x", topic_id, timeout_ms=50_000))
        await asyncio.sleep(0.5)
        await decide(harness, change(topic_id, isr=[1]))
        assert await producing == NotEnoughReplicasAfterAppend.code
        assert await produce_error(client, b"y", topic_id) == NotEnoughReplicas.code
        assert await produce(client, b"acks=1 does not ask") == 1
        assert partition_of(harness).high_watermark == 0
        await decide(harness, change(topic_id, isr=[1, 2]))
        await follow_along(harness, client, topic_id, 2)
        assert partition_of(harness).high_watermark == 2

    run_scenario(scenario)


def test_a_deposed_leader_answers_who_waits_and_says_who_leads() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client)
        producing = asyncio.ensure_future(ask_to_produce(client, b"x", topic_id, timeout_ms=50_000))
        await asyncio.sleep(0.5)
        await decide(harness, change(topic_id, leader=2))
        (answer,) = (await producing).responses[0].partition_responses
        assert answer.error_code == NotLeaderOrFollower.code
        partition = partition_of(harness)
        assert (partition.is_leader, partition.leader_id, partition.leader_epoch) == (False, 2, 1)
        assert replication_of(harness).fetchers.followed == [partition]
        response = await ask_to_produce(client, b"y", topic_id)
        (answer,) = response.responses[0].partition_responses
        assert answer.error_code == NotLeaderOrFollower.code
        assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (2, 1)
        ((endpoint),) = response.node_endpoints
        assert (endpoint.node_id, endpoint.host, endpoint.port) == (2, "n2", 9092)
        await decide(harness, change(topic_id, leader=1))
        assert partition.is_leader
        assert replication_of(harness).fetchers.followed == []
        assert partition.epoch_start_offset == 1

    run_scenario(scenario)


def test_a_partition_that_moves_away_loses_its_log_and_others_are_named() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client)
        await produce(client, b"x")
        await decide(harness, change(topic_id, replicas=[2], isr=[2], leader=2))
        assert harness.node is not None
        assert harness.node.broker.topics.by_name == {}
        result = results(await client.ask(fetch((0, 0), topic_id=topic_id), 16))[0]
        assert (result.error_code, result.current_leader.leader_id) == (NotLeaderOrFollower.code, 2)
        assert await produce_error(client, b"y", topic_id) == NotLeaderOrFollower.code
        entries = harness.machine.disk.find_directory("/data").entries
        assert "t-0" not in entries
        await decide(harness, change(topic_id, replicas=[2, 1], isr=[2]))
        partition = partition_of(harness)
        assert (partition.is_leader, partition.log.end_offset) == (False, 0)

    run_scenario(scenario)


def test_a_follower_knows_its_high_watermark_again_after_a_restart() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client)
        await produce(client, b"x")
        await produce(client, b"y")
        await follow_along(harness, client, topic_id, 1)
        assert partition_of(harness).high_watermark == 1
        assert harness.node is not None
        await harness.node.broker.logs._checkpoint_high_watermarks()
        harness.machine.crash()
        await harness.start()
        partition = partition_of(harness)
        assert (partition.log.end_offset, partition.high_watermark) == (2, 1)

    run_scenario(scenario)


def test_a_replica_joins_when_its_broker_is_unfenced_with_the_next_fetch_of_its_session() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await replicate(harness, client, isr=(1,))
        partition = partition_of(harness)
        assert partition.replicas is not None
        await decide(harness, BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=0, fenced=1))

        async def fetch_on(*partitions: tuple[int, int], session: tuple[int, int]) -> int:
            request = fetch(*partitions, topic_id=topic_id, session=session)
            request.replica_state = ReplicaState(2, -1)
            session_id: int = (await client.ask(request, 17)).session_id
            return session_id

        session_id = await fetch_on((0, 0), session=(0, 0))
        assert partition.replicas.pending is None
        await decide(harness, BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=0, fenced=-1))
        assert partition.replicas.pending is not None
        assert partition.replicas.pending.isr == (1, 2)
        await decide(harness, change(topic_id, isr=[1, 2]), change(topic_id, isr=[1]))
        partition.maybe_expand_isr()
        assert partition.replicas.pending is None, "it was put out, and has not been heard of since"
        await fetch_on(session=(session_id, 1))
        partition.maybe_expand_isr()
        assert partition.replicas.pending is not None

    run_scenario(scenario)


@pytest.mark.parametrize(("rack", "preferred"), [("there", 2), ("here", -1), ("elsewhere", -1), ("", -1)])
def test_a_consumer_is_sent_to_a_replica_in_its_rack(rack: str, preferred: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await register(harness, rack="there")
        topic_id = await create(client)
        await decide(harness, change(topic_id, replicas=[1, 2], isr=[1, 2]))
        await produce(client, b"x")
        request = fetch((0, 0), topic_id=topic_id)
        request.rack_id = rack
        assert results(await client.ask(request, 13))[0].preferred_read_replica == -1, "it has nothing yet"
        await follow_along(harness, client, topic_id, 1)
        result = results(await client.ask(request, 13))[0]
        assert result.preferred_read_replica == preferred
        assert (b"x" in result.records) == (preferred == -1)

    run_scenario(scenario, replica_selector_class=RACK_AWARE_SELECTOR, broker_rack="here")


def test_other_brokers_are_found_on_the_brokers_listener() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await register(harness)
        replication = replication_of(harness)
        assert replication.address_of(2) == Address("n2", 9092)
        assert replication.address_of(3) is None
        settings = replication.connection_settings()
        assert (settings.client_id, settings.connect_timeout_s) == ("broker-1-fetcher", 7.0)
        assert replication.context.broker_epoch() == replication.broker_epoch() > 0
        with pytest.raises(NotController):
            await no_controller(None)  # type: ignore[arg-type]

    run_scenario(scenario, socket_connection_setup_timeout_ms="7000")


def test_throttles_look_back_as_far_as_the_settings_say() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        replication = replication_of(harness)
        copying = (replication._leader_throttle, replication._follower_throttle, replication.moves._throttle)
        for throttle in copying:
            throttle.record(1000)
        await asyncio.sleep(3)
        assert [throttle.rate_now > 0 for throttle in copying] == [True, True, False]
        await asyncio.sleep(8)
        assert [throttle.rate_now > 0 for throttle in copying] == [False, False, False]

    run_scenario(
        scenario,
        replication_quota_window_num="2",
        replication_quota_window_size_seconds="5",
        alter_log_dirs_replication_quota_window_num="3",
    )


def test_the_cleaner_forgets_a_partition_that_moved_away() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, cleanup_policy="compact")
        partition = partition_of(harness)
        assert harness.node is not None
        cleaner = harness.node.broker.cleaner
        cleaner.uncleanable[partition.name] = "a test"
        await register(harness)
        await decide(harness, change(partition.topic_id, replicas=[2], isr=[2], leader=2))
        assert partition.name not in cleaner.uncleanable

    run_scenario(scenario)
