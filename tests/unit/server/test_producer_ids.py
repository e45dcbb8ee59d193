"""Each id is given once, blocks follow each other, and a failed allocation costs nobody an id."""

from __future__ import annotations

import asyncio

import pytest

from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.kernel.errors import KafkaStorageError
from millbeck.server.producer_ids import ProducerIds


class Controller:
    def __init__(self) -> None:
        self.next_first = 0
        self.fails = False

    async def allocate(self) -> ProducerIdBlock:
        await asyncio.sleep(0)
        if self.fails:
            raise KafkaStorageError("the metadata log is gone")
        block = ProducerIdBlock(self.next_first, 10)
        self.next_first += 10
        return block


def test_many_takers_at_once_never_share_an_id() -> None:
    async def scenario() -> None:
        controller = Controller()
        ids = ProducerIds(controller.allocate, asyncio.ensure_future)
        taken = await asyncio.gather(*(ids.take() for _ in range(95)))
        assert sorted(taken) == list(range(95))

    asyncio.run(scenario())


def test_the_next_block_is_there_before_the_current_one_ends() -> None:
    async def scenario() -> None:
        controller = Controller()
        ids = ProducerIds(controller.allocate, asyncio.ensure_future)
        for _ in range(9):
            await ids.take()
        for _ in range(5):
            await asyncio.sleep(0)
        assert controller.next_first == 20

    asyncio.run(scenario())


def test_a_failed_allocation_is_the_takers_error_and_the_next_try_works() -> None:
    async def scenario() -> None:
        controller = Controller()
        ids = ProducerIds(controller.allocate, asyncio.ensure_future)
        controller.fails = True
        with pytest.raises(KafkaStorageError):
            await ids.take()
        controller.fails = False
        assert await ids.take() == 0

    asyncio.run(scenario())
