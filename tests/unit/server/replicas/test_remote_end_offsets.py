"""Ends of partitions elsewhere: asked of a whole node by somebody who wants to know."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from millbeck.client.addresses import Address
from millbeck.client.connection import ConnectionSettings
from millbeck.kernel.environment import Environment
from millbeck.kernel.ids import TopicPartition
from millbeck.server.replicas.remote_end_offsets import ASK_AGAIN_SECONDS, RemoteEndOffsets
from tests.unit.server.harness.broker_harness import BrokerHarness, Client
from tests.unit.server.harness.client_requests import create, produce, run_scenario

FIRST, SECOND, MISSING = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("gone", 0)


class Wanting:
    """Somebody who wants to know of partitions that broker 1 leads."""

    def __init__(self, environment: Environment) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self.address: Address | None = Address("n1", 9092)
        self.ends = RemoteEndOffsets(
            environment,
            address_of=lambda _: self.address,
            connection_settings=ConnectionSettings,
            spawn=self._spawn,
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        self.tasks.append(asyncio.ensure_future(work))

    def read(self, *names: TopicPartition) -> dict[TopicPartition, int]:
        return dict(self.ends.read(dict.fromkeys(names, 1)))


def test_what_is_not_known_is_known_a_moment_later() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client, partitions=2)
        await produce(client, b"a", b"b", index=1)
        wanting = Wanting(environment)
        assert wanting.read(FIRST, SECOND, MISSING) == {}
        assert wanting.read(FIRST, SECOND, MISSING) == {}
        await asyncio.sleep(1)
        assert wanting.read(FIRST, SECOND, MISSING) == {FIRST: 0, SECOND: 2}
        assert len(wanting.tasks) == 1
        assert wanting.read(SECOND) == {SECOND: 2}, "what nobody wants any more is forgotten"
        assert wanting.read(FIRST, SECOND) == {SECOND: 2}

    run_scenario(scenario)


def test_it_is_asked_again_after_a_while_and_not_before() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        wanting = Wanting(environment)
        wanting.read(FIRST)
        await asyncio.sleep(1)
        await produce(client, b"a")
        assert wanting.read(FIRST) == {FIRST: 0}
        await asyncio.sleep(ASK_AGAIN_SECONDS)
        assert wanting.read(FIRST) == {FIRST: 0}
        await asyncio.sleep(1)
        assert wanting.read(FIRST) == {FIRST: 1}
        assert len(wanting.tasks) == 2

    run_scenario(scenario)


def test_nothing_is_asked_when_nobody_wants_to_know() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        wanting = Wanting(environment)
        assert wanting.read() == {}
        assert wanting.tasks == []

    run_scenario(scenario)


def test_a_leader_that_cannot_be_asked_is_asked_later() -> None:
    async def scenario(harness: BrokerHarness, client: Client, environment: Environment) -> None:
        await create(client)
        wanting = Wanting(environment)
        for address in (None, Address("n1", 1)):
            wanting.address = address
            wanting.read(FIRST)
            await asyncio.sleep(ASK_AGAIN_SECONDS)
            assert wanting.read(FIRST) == {}
            await asyncio.sleep(ASK_AGAIN_SECONDS)
        wanting.address = Address("n1", 9092)
        wanting.read(FIRST)
        await asyncio.sleep(1)
        assert wanting.read(FIRST) == {FIRST: 0}
        assert all(task.done() and task.exception() is None for task in wanting.tasks)

    run_scenario(scenario)
