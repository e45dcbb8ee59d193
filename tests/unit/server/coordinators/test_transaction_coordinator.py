"""The transaction driver on a whole node: new producer ids where they are needed, and shards that follow the topic."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from millbeck.coordinator.runtime.result import ResponseCallback, Result
from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.transaction import EPOCH_MAX, LAST_EPOCH_SHOWN
from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.wire.messages.configs import (
    IncrementalAlterableConfig,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResource,
)
from millbeck.wire.messages.transactions import InitProducerIdRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.transactional_producer import Transacting, settled, statuses, transaction_harness


def test_used_up_epochs_bring_a_new_producer_id_with_the_end() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        transactions = harness.node.broker.transactions
        (known,) = transactions.read_all(lambda shard, at: shard.transactions())
        aged = replace(known, producer_epoch=LAST_EPOCH_SHOWN)
        done: list[object] = []
        transactions.write(
            "tx",
            lambda _: Result(records=[TransactionRecord("tx", aged)], response=True),
            ResponseCallback(done.append, done.append),
        )
        producer.epoch, old_id = LAST_EPOCH_SHOWN, producer.producer_id
        assert await producer.produce(b"a") == 0
        assert await producer.end(True) == 0
        assert producer.producer_id != old_id
        assert producer.epoch == 0
        await settled(harness)
        assert await producer.produce(b"b") == 0
        assert await producer.end(True) == 0
        assert done == [True]

    transaction_harness().run(scenario)


def test_a_lost_partition_is_loaded_again_and_its_markers_are_sent_again() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert await producer.produce(b"a") == 0
        assert harness.node is not None
        transactions = harness.node.broker.transactions
        index = transactions.partition_for("tx")
        partition = transactions._drivers[index].partition
        assert await producer.end(True) == 0
        transactions.partition_lost(index)
        assert statuses(harness) == {}
        transactions.partition_led(partition)
        while transactions.is_loading:
            await asyncio.sleep(0.01)
        assert await settled(harness) == {"tx": "CompleteCommit"}

    transaction_harness().run(scenario)


async def reach(harness: BrokerHarness, producer: Transacting, epoch: int) -> None:
    """Write the id's record as it is after so many InitProducerId."""
    assert harness.node is not None
    transactions = harness.node.broker.transactions
    shards = transactions.read_all(lambda shard, at: shard.transactions())
    known = next(each for each in shards if each.transactional_id == producer.name)
    aged = TransactionRecord(producer.name, replace(known, producer_epoch=epoch))
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    transactions.write(
        producer.name,
        lambda _: Result(records=[aged], response=True),
        ResponseCallback(done.set_result, done.set_exception),
    )
    assert await done
    producer.epoch = epoch


async def until_aborted(harness: BrokerHarness, name: str, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while statuses(harness)[name] != "CompleteAbort":
            await asyncio.sleep(0.1)


CHECK_INTERVAL_S, MARGIN_S = 10, 2


def test_a_client_can_not_switch_off_the_timeouts_of_others_with_the_last_epoch() -> None:
    """The attack: be fenced with the last epoch, and begin a transaction with the one above it."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        attacker = await Transacting(client, "attacker", version=0).prepare()
        victim = Transacting(client, "victim", version=0)
        assert await victim.init(timeout_ms=5000) == 0
        await reach(harness, attacker, LAST_EPOCH_SHOWN)
        old_id = attacker.producer_id
        assert await attacker.add(0) == [0]
        assert await attacker.produce(b"a") == 0
        asked = InitProducerIdRequest(transactional_id="attacker", transaction_timeout_ms=1000)
        assert (await client.ask(asked, 5)).error_code == errors.ConcurrentTransactions.code
        await settled(harness)
        attacker.epoch = EPOCH_MAX
        refused = errors.InvalidProducerIdMapping.code
        assert await attacker.add(0) == [refused]
        assert await attacker.add_offsets("g") == refused
        assert [await attacker.end(is_committed) for is_committed in (True, False)] == [refused, refused]
        assert await victim.add(1) == [0]
        assert await victim.produce(b"b", partition=1) == 0
        await until_aborted(harness, "victim", 5 + CHECK_INTERVAL_S + MARGIN_S)
        assert await attacker.init() == 0
        assert attacker.producer_id != old_id
        assert await attacker.add(0) == [0]
        assert await attacker.produce(b"c") == 0
        assert await attacker.end(True) == 0

    transaction_harness(transaction_state_log_num_partitions="1").run(scenario)


def test_a_transaction_with_the_last_epoch_that_a_log_holds_already_is_aborted() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, "poisoned", version=0).prepare()
        assert await producer.init(timeout_ms=5000) == 0
        victim = Transacting(client, "victim", version=0)
        assert await victim.init(timeout_ms=5000) == 0
        for each in (producer, victim):
            assert await each.add(0) == [0]
        await reach(harness, producer, EPOCH_MAX)
        for name in ("victim", "poisoned"):
            await until_aborted(harness, name, 5 + CHECK_INTERVAL_S + MARGIN_S)
        assert await producer.init() == 0
        assert await producer.add(0) == [0]

    transaction_harness(transaction_state_log_num_partitions="1").run(scenario)


def test_transactions_that_fill_the_log_s_batches_are_aborted_all_the_same() -> None:
    """Each record is nearly as large as a batch may be: all of them would never fit one."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        first = await Transacting(client, "t0", version=0).prepare(partition_count=300)
        producers = [first, *(Transacting(client, f"t{index}", version=0) for index in range(1, 8))]
        limit = IncrementalAlterConfigsResource(
            2, "__transaction_state", [IncrementalAlterableConfig("max.message.bytes", 0, "1200")]
        )
        answer = await client.ask(IncrementalAlterConfigsRequest(resources=[limit]), 1)
        assert answer.responses[0].error_code == 0
        for producer in producers:
            assert await producer.init(timeout_ms=1000) == 0
            assert set(await producer.add(*range(300))) == {errors.UnknownServerError.code}, "as Kafka answers"
            index = 0
            while await producer.add(*range(index, index + 16)) == [0] * 16:
                index += 16
            assert index >= 200
        for producer in producers:
            await until_aborted(harness, producer.name, 1 + CHECK_INTERVAL_S + MARGIN_S)

    transaction_harness(transaction_state_log_num_partitions="1").run(scenario)
