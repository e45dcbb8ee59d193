"""Quotas of a whole node: answered at once, muted for the time in the answer, and nothing lost or reordered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ThrottlingQuotaExceeded
from millbeck.server.quotas.client_quotas import ClientQuotas
from millbeck.wire.messages.metadata import ApiVersionsRequest, MetadataRequest
from millbeck.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from millbeck.wire.messages.quorum import VotePartition, VoteRequest, VoteTopic
from millbeck.wire.messages.quotas import AlterClientQuotasEntry, AlterClientQuotasRequest, EntityData, OpData
from millbeck.wire.messages.topics import (
    CreatableTopic,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tests.unit.server.fetch.test_delayed_fetch import as_follower
from tests.unit.server.harness.broker_harness import BrokerHarness, Client, one_batch
from tests.unit.server.harness.client_requests import create, fetch, produce, results, run_scenario

VALUE = bytes(10_000)


async def limit(client: Client, harness: BrokerHarness, entity: str = "user", **quotas: float | None) -> None:
    """Set quotas of all users, or of all of another kind; None removes one."""
    ops = [OpData(key, value or 0.0, value is None) for key, value in quotas.items()]
    request = AlterClientQuotasRequest([AlterClientQuotasEntry([EntityData(entity, None)], ops)], False)
    assert (await client.ask(request, 1)).entries[0].error_code == 0
    await asyncio.sleep(0.1)


def producing(*, acks: int = 1, value: bytes = VALUE) -> ProduceRequest:
    data = PartitionProduceData(0, one_batch(value))
    return ProduceRequest(acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=[data])])


def seconds() -> float:
    return asyncio.get_running_loop().time()


def test_without_a_quota_nothing_is_asked() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        assert harness.node is not None
        assert harness.node.broker.quotas is None
        await limit(client, harness, producer_byte_rate=1000.0)
        assert harness.node.broker.quotas is not None
        await limit(client, harness, producer_byte_rate=None)
        assert harness.node.broker.quotas is None

    run_scenario(scenario)


def test_a_produce_over_the_quota_is_answered_at_once_and_then_nothing_is_read() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await limit(client, harness, producer_byte_rate=500.0)
        began = seconds()
        first = await client.ask(producing(), 9)
        assert seconds() - began < 0.1
        wait_s = first.throttle_time_ms / 1000
        assert wait_s == pytest.approx(10.3, abs=0.5)
        # Two requests behind it: they are handled in order, once the time is over.
        later = [asyncio.ensure_future(client.ask(producing(value=bytes([each])), 9)) for each in (1, 2)]
        other = await harness.connect(environment)
        assert (await other.ask(ApiVersionsRequest(), 0)).error_code == 0
        answers = await asyncio.gather(*later)
        assert seconds() - began >= wait_s
        assert [each.responses[0].partition_responses[0].base_offset for each in answers] == [1, 2]

    run_scenario(scenario)


def test_acks_0_counts_and_is_muted_without_an_answer() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await limit(client, harness, producer_byte_rate=500.0)
        client.send(producing(acks=0), 9, expects_reply=False)
        began = seconds()
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
        assert seconds() - began > 9

    run_scenario(scenario)


@pytest.mark.parametrize("with_session", [False, True])
def test_a_fetch_over_the_quota_is_answered_without_records_and_gets_them_later(with_session: bool) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        for _ in range(3):
            await produce(client, VALUE)
        await limit(client, harness, consumer_byte_rate=1500.0)
        consumer = await harness.connect(environment)
        session = (0, 0) if with_session else (0, -1)
        # What all windows together give is 15,000 bytes: one batch. The next is over the quota.
        opened = await consumer.ask(fetch((0, 0), session=session), 12)
        assert (opened.throttle_time_ms, len(results(opened)[0].records) > 10_000) == (0, True)
        session_id, began = opened.session_id, seconds()
        again = fetch((0, 1), session=(session_id, 1)) if with_session else fetch((0, 1))
        refused = await consumer.ask(again, 12)
        assert seconds() - began < 0.1
        assert refused.responses == []
        assert refused.session_id == session_id
        wait_s = refused.throttle_time_ms / 1000
        assert wait_s > 1
        again = fetch(session=(session_id, 2)) if with_session else again
        served = await consumer.ask(again, 12)
        assert seconds() - began >= wait_s
        for epoch in range(3, 10):
            if served.responses:
                break
            served = await consumer.ask(fetch(session=(session_id, epoch)) if with_session else again, 12)
        assert len(results(served)[0].records) > 10_000

    run_scenario(scenario)


def test_a_batch_larger_than_all_windows_give_is_delivered() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, VALUE)
        await limit(client, harness, consumer_byte_rate=10.0)
        answer = await client.ask(fetch((0, 0)), 12)
        assert len(results(answer)[0].records) > 10_000
        assert (await client.ask(fetch((0, 0)), 12)).throttle_time_ms > 0

    run_scenario(scenario)


def test_a_new_session_is_given_up_when_its_fetch_is_throttled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await produce(client, VALUE)
        await limit(client, harness, consumer_byte_rate=100.0)
        await client.ask(fetch((0, 0)), 12)
        refused = await client.ask(fetch((0, 0), session=(0, 0)), 12)
        assert (refused.session_id, refused.responses, refused.throttle_time_ms > 0) == (0, [], True)
        assert harness.node is not None
        assert len(harness.node.broker.fetch_sessions) == 0

    run_scenario(scenario)


def test_time_on_the_loop_is_limited_in_every_api_but_logging_in() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        await limit(client, harness, request_percentage=1.0)
        assert harness.node is not None
        quotas = harness.node.broker.quotas
        assert quotas is not None
        now_ms = harness.node.deadlines.now_ms()
        used = quotas.request.of("ANONYMOUS", "test", now_ms)
        assert used is not None
        for bucket in [used.bucket, *quotas.request._buckets.values()]:
            bucket.record(30.0, now_ms)  # 0.3 s of the event loop
        assert (await client.ask(ApiVersionsRequest(), 0)).error_code == 0
        answer = await client.ask(MetadataRequest(topics=[]), 9)
        assert answer.throttle_time_ms == 1000
        began = seconds()
        await client.ask(ApiVersionsRequest(), 0)
        assert seconds() - began == pytest.approx(1.0, abs=0.1)

    run_scenario(scenario)


def test_requests_are_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await limit(client, harness, request_percentage=50.0)
        assert harness.node is not None
        quotas = harness.node.broker.quotas
        assert quotas is not None
        counted: list[float] = []

        def handled(self: ClientQuotas, call: Any, took_s: float) -> None:
            counted.append(took_s)

        monkeypatch.setattr(ClientQuotas, "handled", handled)
        await client.ask(MetadataRequest(topics=[]), 9)
        await produce_one(client)
        assert len(counted) >= 2
        assert all(each >= 0 for each in counted)

    async def produce_one(client: Client) -> None:
        await create(client)
        await produce(client, b"v")

    run_scenario(scenario)


def test_an_address_that_connects_too_fast_is_refused_until_it_is_slower() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        assert harness.node is not None
        assert harness.node.listeners[0].address_rates is None
        await limit(client, harness, entity="ip", connection_creation_rate=1.0)
        others = [await harness.connect(environment) for _ in range(12)]
        await asyncio.sleep(0.1)
        assert [each.is_lost for each in others] == [False] * 10 + [True] * 2
        assert "millbeck_quota_refused_connections_total 2" in harness.node.registry.render()
        await asyncio.sleep(12)
        later = await harness.connect(environment)
        await asyncio.sleep(0.1)
        assert not later.is_lost
        await limit(client, harness, entity="ip", connection_creation_rate=None)
        assert harness.node.listeners[0].address_rates is None

    run_scenario(scenario)


def creating(*names: str, partitions: int) -> CreateTopicsRequest:
    wanted = [CreatableTopic(name, num_partitions=partitions, replication_factor=1) for name in names]
    return CreateTopicsRequest(topics=wanted, timeout_ms=5000)


def test_partition_changes_over_the_quota_are_refused_or_for_old_versions_throttled() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await limit(client, harness, controller_mutation_rate=1.0)
        first = await client.ask(creating("a", "b", partitions=10), 7)
        assert {topic.name: topic.error_code for topic in first.topics} == {"a": 0, "b": 0}
        assert first.throttle_time_ms == pytest.approx(9000, abs=100)  # 11 of the 20 were there
        # The connection was muted until the bucket was level again.
        assert (await client.ask(creating("c", "d", partitions=10), 7)).throttle_time_ms > 0
        old = await client.ask(creating("e", partitions=30), 5)
        assert (old.topics[0].error_code, old.throttle_time_ms > 10_000) == (0, True)
        refused = ThrottlingQuotaExceeded.code
        requests: list[tuple[Any, int, str]] = [
            (creating("f", partitions=1), 7, "topics"),
            (CreatePartitionsRequest([CreatePartitionsTopic("a", 20, None)], 5000, False), 3, "results"),
            (DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=5000), 6, "responses"),
        ]
        for request, version, name in requests:
            other = await harness.connect(environment)
            answer = await other.ask(request, version)
            assert getattr(answer, name)[0].error_code == refused
            assert answer.throttle_time_ms > 0

    run_scenario(scenario)


def test_nodes_are_not_throttled_by_the_quotas_of_their_user() -> None:
    """Without logins they have the same user as everybody, and some answers to them cannot name a time."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        topic_id = await create(client)
        await limit(client, harness, request_percentage=0.0001, consumer_byte_rate=1.0)
        assert harness.node is not None
        now_ms = harness.node.deadlines.now_ms()
        used = harness.node.broker.all_quotas.request.of("ANONYMOUS", "test", now_ms)
        assert used is not None
        used.bucket.record(1000.0, now_ms)  # time of the loop, of which the simulation has none
        _, controller = await environment.network.connect(Client, host="n1", port=9093)
        assert isinstance(controller, Client)
        cluster_id = harness.node.cluster_id
        partition = VotePartition(
            partition_index=0, replica_epoch=1, replica_id=2, last_offset_epoch=0, last_offset=0, pre_vote=False
        )
        vote = VoteRequest(cluster_id=cluster_id, topics=[VoteTopic("__cluster_metadata", [partition])])
        for version in (0, 1, 1):
            assert (await controller.ask(vote, version)).error_code == 0
        replica = await harness.connect(environment)
        for _ in range(3):
            answer = await replica.ask(as_follower(fetch((0, 0), topic_id=topic_id)), 17)
            assert (answer.throttle_time_ms, answer.error_code) == (0, 0)
        other = await harness.connect(environment)
        await other.ask(MetadataRequest(topics=[]), 9)
        assert (await other.ask(MetadataRequest(topics=[]), 9)).throttle_time_ms > 0
        marked = [each for each in harness.node.listeners[0].connections.values() if each.is_node]
        assert len(marked) == 1
        before = used.bucket.rate(now_ms)
        of_a_node: Any = SimpleNamespace(
            handler=SimpleNamespace(api_key=1), connection=marked[0], principal=marked[0].principal, client_id="test"
        )
        harness.node.broker.all_quotas.handled(of_a_node, 1000.0)
        assert used.bucket.rate(now_ms) == before

    run_scenario(scenario, listeners="PLAINTEXT://:9092,CONTROLLER://:9093", controller_listener_names="CONTROLLER")
