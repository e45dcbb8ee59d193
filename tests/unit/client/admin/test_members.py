"""Members removed from a group and producers fenced, on a whole node in the simulator."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.client import Admin, Consumer, Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import InvalidProducerEpoch, ProducerFenced, UnknownMemberId
from tests.unit.client.one_node import HERE, in_world


async def stay(environment: Environment, instance_id: str | None) -> None:
    async with Consumer(HERE, group_id="g", group_instance_id=instance_id, environment=environment) as consumer:
        consumer.subscribe(["t"])
        while True:
            await consumer.poll()


def test_members_are_removed_by_their_instance_ids_and_all_at_once() -> None:
    async def scenario(environment: Environment) -> None:
        members = [asyncio.create_task(stay(environment, name)) for name in ("one", "two", None)]
        async with Admin(HERE, environment=environment) as admin:
            await asyncio.sleep(10)
            assert len((await admin.describe_groups(["g"]))["g"].members) == 3
            removed = await admin.remove_members("g", ["one", "nobody"])
            assert removed["one"].startswith("one-") or removed["one"] == ""
            assert isinstance(removed.failed["nobody"], UnknownMemberId)
            for task in members:
                task.cancel()
            await asyncio.wait(members)
            assert len((await admin.describe_groups(["g"]))["g"].members) == 1
            assert list((await admin.remove_members("g")).all()) == ["two"]
            assert (await admin.describe_groups(["g"]))["g"].state == "Empty"
            assert (await admin.remove_members("g")).all() == {}

    in_world(scenario)


def test_producers_are_fenced() -> None:
    async def scenario(environment: Environment) -> None:
        async with (
            Producer(HERE, transactional_id="tx", environment=environment) as producer,
            Admin(HERE, environment=environment) as admin,
        ):
            async with producer.transaction() as transaction:
                await transaction.send("t", b"x")
            (listed,) = await admin.list_transactions()
            assert (await admin.describe_transactions(["tx"]))["tx"].state == listed.state
            fenced = (await admin.fence_producers(["tx"]))["tx"]
            assert (fenced.transactional_id, fenced.producer_id) == ("tx", listed.producer_id)
            with pytest.raises((InvalidProducerEpoch, ProducerFenced)):
                async with producer.transaction() as transaction:
                    await transaction.send("t", b"y")
            await admin.force_terminate_transaction("tx")

    in_world(scenario)
