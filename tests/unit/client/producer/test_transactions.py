"""The transactional producer against a whole node in the simulator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from millbeck.client.admin import Admin
from millbeck.client.admin.transactions import describe_transactions, force_terminate_transaction
from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.consumer import Consumer
from millbeck.client.errors import TransactionAborted
from millbeck.client.producer import Producer
from millbeck.client.producer.transactions import PreparedState
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, InvalidTxnState, ProducerFenced
from millbeck.kernel.ids import TopicPartition
from tests.unit.client.one_node import HERE, in_world

PLACE = TopicPartition("t", 0)


def producer(environment: Environment, name: str = "tx", **settings: Any) -> Producer:
    return Producer({**HERE, "transactional.id": name, "linger.ms": "0", **settings}, environment=environment)


async def read(environment: Environment) -> list[bytes]:
    async with Consumer({**HERE, "isolation.level": "read_committed"}, environment=environment) as consumer:
        consumer.assign([PLACE])
        consumer.seek_to_beginning(PLACE)
        found: list[bytes] = []
        while True:
            polled = await consumer.poll(timeout_s=2)
            if not polled:
                return found
            found += [record.value or b"" for records in polled.values() for record in records]


@pytest.mark.parametrize("version", [0, 2])
def test_what_is_committed_is_seen_and_what_is_aborted_is_not(version: int) -> None:
    async def scenario(environment: Environment) -> None:
        async with producer(environment) as one:
            await one.init_transactions()
            for number in range(6):
                one.begin_transaction()
                sent = [await one.enqueue("t", b"%d-%d" % (number, index), partition=0) for index in range(3)]
                if number % 2:
                    await one.flush()
                    await one.abort_transaction()
                else:
                    await one.commit_transaction()
                assert all(future.done() for future in sent)
            assert one.transactions.is_version_2 == (version == 2)
        assert await read(environment) == [b"%d-%d" % (number, index) for number in (0, 2, 4) for index in range(3)]

    in_world(scenario, version)


@pytest.mark.parametrize("version", [0, 2])
def test_offsets_are_committed_with_the_transaction(version: int) -> None:
    async def scenario(environment: Environment) -> None:
        async with (
            producer(environment) as one,
            Consumer({**HERE, "group.id": "g"}, environment=environment) as consumer,
        ):
            await one.init_transactions()
            for offset, is_committed in ((3, True), (9, False)):
                one.begin_transaction()
                await one.enqueue("t", b"x", partition=1)
                await one.send_offsets("g", {PLACE: CommittedOffset(offset)})
                await (one.commit_transaction() if is_committed else one.abort_transaction())
            await asyncio.sleep(0.1)
            found = (await consumer.committed([PLACE]))[PLACE]
            assert found is not None
            assert found.offset == 3

    in_world(scenario, version)


@pytest.mark.parametrize("version", [0, 2])
def test_an_abort_gives_up_what_is_not_sent(version: int) -> None:
    async def scenario(environment: Environment) -> None:
        async with producer(environment, **{"linger.ms": "5000"}) as one:
            await one.init_transactions()
            one.begin_transaction()
            future = await one.enqueue("t", b"never", partition=0)
            await one.abort_transaction()
            with pytest.raises(TransactionAborted):
                await future
            one.begin_transaction()
            await one.enqueue("t", b"later", partition=0)
            await one.commit_transaction()
        assert await read(environment) == [b"later"]

    in_world(scenario, version)


@pytest.mark.parametrize("version", [0, 2])
def test_whoever_comes_later_fences_the_one_before(version: int) -> None:
    async def scenario(environment: Environment) -> None:
        async with producer(environment) as old, producer(environment) as new:
            await old.init_transactions()
            old.begin_transaction()
            await old.send("t", b"zombie", partition=0)
            await new.init_transactions()
            with pytest.raises(ApiError):
                await old.commit_transaction()
            with pytest.raises((ProducerFenced, InvalidTxnState)):
                old.begin_transaction()
            new.begin_transaction()
            await new.enqueue("t", b"fresh", partition=0)
            await new.commit_transaction()
        assert await read(environment) == [b"fresh"]

    in_world(scenario, version)


def test_nothing_is_sent_outside_a_transaction() -> None:
    async def scenario(environment: Environment) -> None:
        async with producer(environment) as one:
            with pytest.raises(InvalidTxnState):
                await one.enqueue("t", b"x")
            with pytest.raises(InvalidTxnState):
                one.begin_transaction()
            await one.init_transactions()
            with pytest.raises(InvalidTxnState):
                await one.init_transactions()
            with pytest.raises(InvalidTxnState):
                await one.commit_transaction()
            one.begin_transaction()
            await one.commit_transaction()
        async with Producer(HERE, environment=environment) as plain:
            with pytest.raises(InvalidTxnState):
                plain.begin_transaction()

    in_world(scenario)


def two_phase(environment: Environment, **settings: str) -> Producer:
    return Producer(
        {**HERE, "transactional.id": "x", "transaction.two.phase.commit.enable": "true", **settings},
        environment=environment,
    )


async def committed_values(environment: Environment) -> list[bytes | None]:
    async with Consumer({**HERE, "isolation.level": "read_committed"}, environment=environment) as consumer:
        consumer.assign([PLACE])
        consumer.seek_to_beginning(PLACE)
        end = (await consumer.end_offsets([PLACE]))[PLACE]
        found: list[bytes | None] = []
        while await consumer.position(PLACE) < end:
            found += [each.value for each in (await consumer.poll(timeout_s=1.0)).get(PLACE, [])]
        return found


def test_a_prepared_transaction_is_ended_by_its_successor_as_was_decided() -> None:
    async def scenario(environment: Environment) -> None:
        decided: PreparedState | None = None
        for value, is_decided in ((b"yes", True), (b"no", False), (b"again", True)):
            producer = two_phase(environment)
            await producer.init_transactions(keeps_prepared=True)
            await producer.complete_transaction(decided or PreparedState(-1, -1))
            producer.begin_transaction()
            await producer.enqueue("t", value, partition=0)
            state = await producer.prepare_transaction()
            if is_decided:
                decided = PreparedState.parse(str(state))
            with pytest.raises(InvalidTxnState):
                await producer.enqueue("t", b"late", partition=0)
            with pytest.raises(InvalidTxnState):
                producer.begin_transaction()
            await producer.close(0)
            # Far longer than any timeout: it waits for its decision.
            await asyncio.sleep(60)
        async with two_phase(environment) as producer:
            await producer.init_transactions(keeps_prepared=True)
            assert producer.transactions.prepared == decided
            await producer.complete_transaction(decided or PreparedState(-1, -1))
            producer.begin_transaction()
            await producer.enqueue("t", b"last", partition=0)
            await producer.prepare_transaction()
            await producer.commit_transaction()
        assert await committed_values(environment) == [b"yes", b"again", b"last"]

    in_world(scenario, transaction_version=3)


def test_without_keeping_it_a_prepared_transaction_is_aborted_and_can_be_terminated() -> None:
    async def scenario(environment: Environment) -> None:
        for _ in range(2):
            producer = two_phase(environment)
            await producer.init_transactions()
            producer.begin_transaction()
            await producer.enqueue("t", b"lost", partition=0)
            await producer.prepare_transaction()
            await producer.close(0)
        async with Admin(HERE, environment=environment) as admin:
            await force_terminate_transaction(admin.cluster, "x")
            described = (await describe_transactions(admin.cluster, ["x"]))["x"]
            assert (described.state, described.timeout_ms) == ("Empty", 1)
        assert await committed_values(environment) == []

    in_world(scenario, transaction_version=3)


def test_preparing_needs_the_setting_and_a_broker_that_offers_it() -> None:
    async def scenario(environment: Environment) -> None:
        async with Producer({**HERE, "transactional.id": "y"}, environment=environment) as producer:
            await producer.init_transactions()
            producer.begin_transaction()
            with pytest.raises(InvalidTxnState, match=r"transaction\.two\.phase\.commit\.enable is off"):
                await producer.prepare_transaction()
            await producer.abort_transaction()
        async with two_phase(environment) as producer:
            with pytest.raises(ApiError, match="InitProducerId"):
                await producer.init_transactions(5.0)

    in_world(scenario)


def test_a_prepared_state_is_text_and_back() -> None:
    assert PreparedState.parse("12:3") == PreparedState(12, 3)
    assert str(PreparedState(12, 3)) == "12:3"
    with pytest.raises(ValueError, match="producer id:epoch"):
        PreparedState.parse("12")


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_as_a_block_commits_at_its_end_and_aborts_on_an_exception(version: int) -> None:
    async def scenario(environment: Environment) -> None:
        async with producer(environment) as one:
            async with one.transaction() as transaction:
                assert (await transaction.send("t", b"kept", partition=0)).partition == 0
                transaction.send_nowait("t", b"kept too", partition=0)
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with one.transaction() as transaction:
                    await transaction.send("t", b"dropped", partition=0)
                    raise ZeroDivisionError
            with pytest.raises(asyncio.CancelledError):  # noqa: PT012
                async with one.transaction() as transaction:
                    await transaction.send("t", b"cancelled", partition=0)
                    raise asyncio.CancelledError
            async with one.transaction() as transaction:
                await transaction.send("t", b"last", partition=0)
        assert await read(environment) == [b"kept", b"kept too", b"last"]

    in_world(scenario, version)


@pytest.mark.parametrize("version", [0, 2])
def test_the_positions_of_a_consumer_are_part_of_the_transaction(version: int) -> None:
    async def scenario(environment: Environment) -> None:
        place = TopicPartition("t", 1)
        async with producer(environment) as one:
            async with one.transaction() as transaction:
                for number in range(5):
                    await transaction.send("t", b"%d" % number, partition=1)
            settings = {**HERE, "group.id": "g", "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
            async with Consumer(settings, enable_auto_commit=False, environment=environment) as consumer:
                consumer.assign([place])
                async for record in consumer:
                    async with one.transaction() as transaction:
                        await transaction.send("t", record.value, partition=0)
                        await transaction.send_offsets(consumer)
                    if record.offset == 2:
                        break
                found = (await consumer.committed([place]))[place]
                assert found is not None
                assert found.offset == 3
        assert await read(environment) == [b"0", b"1", b"2"]

    in_world(scenario, version)
