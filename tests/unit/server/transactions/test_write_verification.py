"""Writes that come late, out of order or uninvited are kept out of transactions."""

from __future__ import annotations

import asyncio

from millbeck.kernel import errors
from millbeck.kernel.environment import Environment
from millbeck.wire.messages.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.transactional_producer import Transacting, settled, stable_offset, transaction_harness


def test_what_was_not_added_is_refused_up_to_version_1() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=0).prepare()
        assert await producer.produce(b"uninvited") == errors.TransactionAbortable.code
        data = producer.batch(b"uninvited")
        older = await client.ask(producer.produce_request(data), 9)
        assert older.responses[0].partition_responses[0].error_code == errors.InvalidTxnState.code
        assert await producer.add(0) == [0]
        assert await producer.produce(b"invited") == 0
        assert await producer.produce(b"elsewhere", partition=1) == errors.TransactionAbortable.code

    transaction_harness().run(scenario)


def test_verification_can_be_switched_off() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client, version=0).prepare()
        assert await producer.produce(b"uninvited") == 0
        assert await stable_offset(client) == 0

    transaction_harness(transaction_partition_verification_enable="false").run(scenario)


def test_a_write_that_comes_after_its_marker_is_refused() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        verification = harness.node.broker.verification
        original, gate = verification.ask, asyncio.Event()

        async def slow(*arguments: object, **more: object) -> object:
            outcomes = await original(*arguments, **more)  # type: ignore[arg-type]
            await gate.wait()
            return outcomes

        verification.ask = slow  # type: ignore[method-assign, assignment]
        held = client.send(producer.produce_request(producer.batch(b"late")), 12)
        other = await harness.connect(environment)
        await asyncio.sleep(0.05)
        topics = [WritableTxnMarkerTopic("t", [0])]
        marker = WritableTxnMarker(producer.producer_id, producer.epoch + 1, False, topics, 0, 2)
        await other.ask(WriteTxnMarkersRequest(markers=[marker]), 2)
        gate.set()
        answer = await held
        assert answer.responses[0].partition_responses[0].error_code == errors.InvalidTxnState.code
        assert await stable_offset(other) == 1

    transaction_harness().run(scenario)


def test_a_later_batch_does_not_overtake_the_first() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        late = errors.OutOfOrderSequenceNumber.code
        assert await producer.produce(b"second", base_sequence=1) == late
        assert await producer.produce(b"first") == 0
        assert await producer.produce(b"second") == 0
        older = await Transacting(client, "older", version=0).prepare()
        await older.add(0)
        assert harness.node is not None
        partition = harness.node.broker.topics.led_partition("t", 0)
        verification = harness.node.broker.verification
        guard = verification.start(partition, older.producer_id, older.epoch, 0, adds=False)
        assert guard is not None
        assert await older.produce(b"second", base_sequence=1) == late
        assert await older.produce(b"first") == 0

    transaction_harness().run(scenario)


def test_the_end_before_is_waited_for_a_moment() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        sender = harness.node.broker.transactions.sender
        original, waiting = sender.send, []
        sender.send = lambda *arguments: waiting.append(arguments)  # type: ignore[method-assign]
        assert await producer.produce(b"a") == 0
        assert await producer.end(True) == 0
        assert await producer.produce(b"b") == errors.ConcurrentTransactions.code
        sender.send = original  # type: ignore[method-assign]
        asyncio.get_running_loop().call_later(0.05, lambda: original(*waiting[0]))
        assert await producer.produce(b"b") == 0
        assert harness.node.broker.verification.failure_count == 1

    transaction_harness().run(scenario)


def test_the_marker_of_the_end_before_does_not_refuse_the_next_transaction() -> None:
    """The coordinator is asked just before that marker is written, and answers just after."""

    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        broker = harness.node.broker
        sender, verification = broker.transactions.sender, broker.verification
        send, ask_once, waiting = sender.send, verification._ask_once, []
        sender.send = lambda *arguments: waiting.append(arguments)  # type: ignore[method-assign]
        assert await producer.produce(b"a") == 0
        assert await producer.end(True) == 0

        async def asked_late(*arguments: object, **more: object) -> object:
            sender.send = send  # type: ignore[method-assign]
            send(*waiting.pop())
            await settled(harness)
            return await ask_once(*arguments, **more)  # type: ignore[arg-type]

        verification._ask_once = asked_late  # type: ignore[method-assign, assignment]
        assert await producer.produce(b"b") == 0
        assert waiting == []

    transaction_harness().run(scenario)


def test_who_writes_where_nobody_leads_is_sent_away() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert harness.node is not None
        broker = harness.node.broker
        partition = broker.topics.led_partition("t", 0)
        original = broker.verification.ask

        async def deposed(*arguments: object, **more: object) -> object:
            outcomes = await original(*arguments, **more)  # type: ignore[arg-type]
            partition.follow(-1, partition.leader_epoch + 1, partition.partition_epoch + 1)
            broker.verification.partition_lost(partition)
            return outcomes

        broker.verification.ask = deposed  # type: ignore[method-assign, assignment]
        assert await producer.produce(b"while it is asked about") == errors.NotLeaderOrFollower.code
        assert await producer.produce(b"afterwards") == errors.NotLeaderOrFollower.code

    transaction_harness().run(scenario)


def test_guards_are_bounded_and_go_with_their_partition() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        from millbeck.server.transactions import write_verification

        await Transacting(client).prepare()
        assert harness.node is not None
        broker = harness.node.broker
        partition = broker.topics.led_partition("t", 0)
        for producer_id in range(write_verification.GUARDS_MAX + 5):
            assert broker.verification.start(partition, producer_id, 0, 0, adds=True) is not None
        (entries,) = broker.verification._entries.values()
        assert len(entries) == write_verification.GUARDS_MAX
        one = broker.verification.start(partition, 9999, 0, 0, adds=True)
        same = broker.verification.start(partition, 9999, 0, 0, adds=True)
        newer = broker.verification.start(partition, 9999, 1, 0, adds=True)
        assert one is not None
        assert same is not None
        assert newer is not None
        assert one.entry is same.entry is not newer.entry
        broker.verification.partition_lost(partition)
        assert not broker.verification._entries
        await settled(harness)

    transaction_harness().run(scenario)
