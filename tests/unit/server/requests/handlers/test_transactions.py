"""The life of transactions on a whole node, and how they are seen from outside."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.security.authorizer import Operation, ResourceType
from millbeck.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
    DescribeTransactionsRequest,
    EndTxnRequest,
    ListTransactionsRequest,
)
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.transactional_producer import (
    Transacting,
    aborted,
    denying,
    settled,
    stable_offset,
    statuses,
    transaction_harness,
)


@pytest.mark.parametrize("version", [0, 2])
def test_transactions_are_committed_and_aborted(version: int) -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=version).prepare()
        first_id, first_epoch = producer.producer_id, producer.epoch
        for is_committed in (True, False, True):
            if version == 0:
                assert await producer.add(0, 1) == [0, 0]
            for partition in (0, 1):
                assert await producer.produce(b"a", b"b", partition=partition) == 0
                assert await stable_offset(client, partition) <= (await _end(client, partition)) - 2
            assert await producer.end(is_committed) == 0
            await settled(harness)
            # Two records and a marker.
            assert await stable_offset(client, 0) == await _end(client, 0)
        assert await _end(client, 0) == 9
        assert await aborted(client) == [(first_id, 3)]
        assert producer.epoch == first_epoch + (3 if version == 2 else 0)
        assert statuses(harness) == {"tx": "CompleteCommit"}

    transaction_harness().run(scenario)


async def _end(client: Client, partition: int) -> int:
    from millbeck.wire.messages.log_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

    topics = [ListOffsetsTopic("t", [ListOffsetsPartition(partition, timestamp=-1)])]
    answer = await client.ask(ListOffsetsRequest(replica_id=-1, topics=topics), 6)
    return int(answer.topics[0].partitions[0].offset)


def test_a_delayed_end_touches_nothing_later() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        epoch = producer.epoch
        assert await producer.produce(b"a") == 0
        assert await producer.end(True) == 0
        await settled(harness)
        assert await producer.produce(b"b") == 0
        late = EndTxnRequest("tx", producer.producer_id, epoch, True)
        assert (await client.ask(late, 5)).error_code == errors.ProducerFenced.code
        assert (await client.ask(late, 1)).error_code == errors.InvalidProducerEpoch.code
        assert statuses(harness) == {"tx": "Ongoing"}

    transaction_harness().run(scenario)


def test_one_partition_that_cannot_be_added_keeps_the_others_out() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=0).prepare()
        unknown, skipped = errors.UnknownTopicOrPartition.code, errors.OperationNotAttempted.code
        assert await producer.add(0, 7) == [skipped, unknown]
        assert statuses(harness) == {"tx": "Empty"}
        assert harness.node is not None
        harness.node.broker.authorizer = denying(Operation.WRITE, ResourceType.TOPIC, "t")
        assert await producer.add(0) == [errors.TopicAuthorizationFailed.code]
        harness.node.broker.authorizer = denying(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, "tx")
        refused = errors.TransactionalIdAuthorizationFailed.code
        assert await producer.add(0) == [refused]
        assert await producer.end(True) == refused
        assert await producer.add_offsets("g") == refused
        assert await producer.init() == refused

    transaction_harness().run(scenario)


def test_brokers_add_and_verify_for_many_transactions() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        one = await Transacting(client, "one").prepare()
        other = await Transacting(client, "other").prepare()
        topics = [AddPartitionsToTxnTopic("t", [0, 1])]

        async def ask(verify_only: bool) -> list[list[int]]:
            transactions = [
                AddPartitionsToTxnTransaction("one", one.producer_id, one.epoch, verify_only, topics),
                AddPartitionsToTxnTransaction("other", other.producer_id, other.epoch + 1, verify_only, topics),
            ]
            answer = await client.ask(AddPartitionsToTxnRequest(transactions=transactions), 5)
            assert [each.transactional_id for each in answer.results_by_transaction] == ["one", "other"]
            return [
                [each.partition_error_code for topic in result.topic_results for each in topic.results_by_partition]
                for result in answer.results_by_transaction
            ]

        fenced, unknown = errors.ProducerFenced.code, errors.TransactionAbortable.code
        assert await ask(True) == [[unknown] * 2, [fenced] * 2]
        assert await ask(False) == [[0, 0], [fenced] * 2]
        assert await ask(True) == [[0, 0], [fenced] * 2]
        assert harness.node is not None
        harness.node.broker.authorizer = denying(Operation.CLUSTER_ACTION, ResourceType.CLUSTER, "kafka-cluster")
        answer = await client.ask(AddPartitionsToTxnRequest(transactions=[]), 4)
        assert answer.error_code == errors.ClusterAuthorizationFailed.code

    transaction_harness().run(scenario)


def test_an_open_transaction_of_the_one_before_is_aborted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        old = await Transacting(client).prepare()
        assert await old.produce(b"zombie") == 0
        new = Transacting(client)
        assert await new.init() == 0
        assert new.epoch == old.epoch + 2
        assert await aborted(client) == [(old.producer_id, 0)]
        assert await old.produce(b"late") == errors.InvalidProducerEpoch.code
        assert await old.end(True) == errors.ProducerFenced.code
        assert await new.produce(b"fresh") == 0
        assert await new.end(True) == 0

    transaction_harness().run(scenario)


def test_a_transaction_that_takes_too_long_is_aborted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert await producer.init(timeout_ms=2000) == 0
        assert await producer.produce(b"slow") == 0
        import asyncio

        await asyncio.sleep(25)
        assert await settled(harness) == {"tx": "CompleteAbort"}
        assert await aborted(client) == [(producer.producer_id, 0)]
        assert await producer.produce(b"more") == errors.InvalidProducerEpoch.code

    transaction_harness().run(scenario)


def test_a_crash_leaves_nothing_half_done() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert await producer.produce(b"a") == 0
        assert await producer.end(True) == 0
        harness.machine.crash()
        await harness.start()
        client = await harness.connect(environment)
        assert harness.node is not None
        while harness.node.broker.transactions.is_loading:
            import asyncio

            await asyncio.sleep(0.01)
        assert await settled(harness) == {"tx": "CompleteCommit"}
        assert await stable_offset(client) >= 2

    transaction_harness().run(scenario)


def test_transactions_are_listed_and_described() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, "app-1").prepare()
        await Transacting(client, "app-2").prepare()
        assert await producer.produce(b"a", partition=1) == 0

        async def names(**filters: Any) -> list[str]:
            answer = await client.ask(ListTransactionsRequest(**filters), 2)
            return sorted(each.transactional_id for each in answer.transaction_states)

        assert await names() == ["app-1", "app-2"]
        assert await names(state_filters=["Ongoing"]) == ["app-1"]
        assert await names(producer_id_filters=[producer.producer_id]) == ["app-1"]
        assert await names(transactional_id_pattern=".*-2") == ["app-2"]
        answer = await client.ask(ListTransactionsRequest(state_filters=["Gone"]), 2)
        assert (answer.unknown_state_filters, answer.transaction_states) == (["Gone"], [])
        bad = await client.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
        assert bad.error_code == errors.InvalidRegularExpression.code
        described = await client.ask(DescribeTransactionsRequest(["app-1", "nobody", ""]), 0)
        one, nobody, empty = described.transaction_states
        assert (one.transaction_state, one.producer_id) == ("Ongoing", producer.producer_id)
        assert [(each.topic, each.partitions) for each in one.topics] == [("t", [1])]
        assert nobody.error_code == errors.TransactionalIdNotFound.code
        assert empty.error_code == errors.InvalidRequest.code
        assert harness.node is not None
        harness.node.broker.authorizer = denying(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, "app-1")
        assert await names() == ["app-2"]
        described = await client.ask(DescribeTransactionsRequest(["app-1"]), 0)
        assert described.transaction_states[0].error_code == errors.TransactionalIdAuthorizationFailed.code

    transaction_harness().run(scenario)
