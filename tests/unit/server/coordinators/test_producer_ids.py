"""Each id is given once, blocks follow each other, and nobody waits for a controller that another node may be."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.kernel.errors import CoordinatorLoadInProgress, RequestTimedOut
from millbeck.server.coordinators.producer_ids import ProducerIds


class Controller:
    def __init__(self) -> None:
        self.next_first = 0
        self.asked = 0
        self.fails = False

    async def allocate(self) -> ProducerIdBlock:
        self.asked += 1
        await asyncio.sleep(0)
        if self.fails:
            raise RequestTimedOut("no controller")
        block = ProducerIdBlock(self.next_first, 10)
        self.next_first += 10
        return block


def ids_of(controller: Controller, *, is_alone: bool = False) -> ProducerIds:
    return ProducerIds(controller.allocate, asyncio.ensure_future, lambda: is_alone)


async def run_ready_callbacks() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_many_takers_at_once_never_share_an_id() -> None:
    async def scenario() -> None:
        ids = ids_of(Controller(), is_alone=True)
        taken: list[int] = []
        for _ in range(20):
            results = await asyncio.gather(*(ids.take() for _ in range(7)), return_exceptions=True)
            taken += [each for each in results if isinstance(each, int)]
            assert {type(each) for each in results} <= {int, CoordinatorLoadInProgress}
        assert sorted(taken) == list(range(len(taken)))
        assert len(taken) > 100

    asyncio.run(scenario())


def test_the_next_block_is_there_before_the_current_one_ends() -> None:
    async def scenario() -> None:
        controller = Controller()
        ids = ids_of(controller, is_alone=True)
        for _ in range(9):
            await ids.take()
        await run_ready_callbacks()
        assert controller.next_first == 20
        assert [await ids.take() for _ in range(3)] == [9, 10, 11]

    asyncio.run(scenario())


def test_who_finds_none_is_told_at_once_and_one_block_is_asked_for() -> None:
    async def scenario() -> None:
        controller = Controller()
        ids = ids_of(controller)
        for _ in range(3):
            with pytest.raises(CoordinatorLoadInProgress):
                await ids.take()
        await run_ready_callbacks()
        assert controller.asked == 1
        assert await ids.take() == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_failed_allocation_is_made_again_with_the_next_question(is_alone: bool) -> None:
    async def scenario() -> None:
        controller = Controller()
        controller.fails = True
        ids = ids_of(controller, is_alone=is_alone)
        for attempt in (1, 2):
            with pytest.raises(CoordinatorLoadInProgress):
                await ids.take()
            await run_ready_callbacks()
            assert controller.asked == attempt
        controller.fails = False
        with pytest.raises(CoordinatorLoadInProgress) if not is_alone else contextlib.nullcontext():
            assert await ids.take() == 0
        await run_ready_callbacks()
        assert await ids.take() == (1 if is_alone else 0)

    asyncio.run(scenario())
