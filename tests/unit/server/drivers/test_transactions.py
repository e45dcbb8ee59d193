"""The transaction driver on a whole node: new producer ids where they are needed, and shards that follow the topic."""

from __future__ import annotations

from house import Client, House
from transacting import Transacting, settled, statuses, transaction_house

from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.transaction import LAST_EPOCH_SHOWN
from millbeck.kernel.environment import Environment


def test_used_up_epochs_bring_a_new_producer_id_with_the_end() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        from dataclasses import replace

        from millbeck.coordinator.runtime.result import Reply, Result

        producer = await Transacting(client).prepare()
        assert house.node is not None
        transactions = house.node.broker.transactions
        (known,) = transactions.read_all(lambda shard, at: shard.transactions())
        aged = replace(known, producer_epoch=LAST_EPOCH_SHOWN)
        done: list[object] = []
        transactions.write(
            "tx",
            lambda _: Result(records=[TransactionRecord("tx", aged)], response=True),
            Reply(done.append, done.append),
        )
        producer.epoch, old_id = LAST_EPOCH_SHOWN, producer.producer_id
        assert await producer.produce(b"a") == 0
        assert await producer.end(True) == 0
        assert producer.producer_id != old_id
        assert producer.epoch == 0
        await settled(house)
        assert await producer.produce(b"b") == 0
        assert await producer.end(True) == 0
        assert done == [True]

    transaction_house().run(scenario)


def test_a_lost_partition_is_loaded_again_and_its_markers_are_sent_again() -> None:
    async def scenario(house: House, client: Client, environment: Environment) -> None:
        producer = await Transacting(client).prepare()
        assert await producer.produce(b"a") == 0
        assert house.node is not None
        transactions = house.node.broker.transactions
        index = transactions.partition_for("tx")
        partition = transactions._drivers[index].partition
        assert await producer.end(True) == 0
        transactions.partition_lost(index)
        assert statuses(house) == {}
        transactions.partition_led(partition)
        while transactions.is_loading:
            import asyncio

            await asyncio.sleep(0.01)
        assert await settled(house) == {"tx": "CompleteCommit"}

    transaction_house().run(scenario)
