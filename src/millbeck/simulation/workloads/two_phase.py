"""Two-phase commit: workers that write numbers in transactions decided by an external system (KIP-939).

The external system is a `Ledger` that never fails. Each decision atomically stores the worker's progress and the
prepared transaction that must be committed for it. A worker prepares its transaction, stores the decision in the
ledger, and commits; between any two steps it may stop, permanently or until another worker has replaced it. Its
successor first takes over the page in the ledger, then the transactional id with the prepared transaction, and
completes that transaction as decided in the ledger. Each number must be in the output exactly once.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from typing import Final

from millbeck.client.producer import Producer
from millbeck.client.producer.transactions import PreparedState
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.simulation.workloads.exactly_once import CHUNK_MAX, OUTPUT, PATIENCE_S, WorkerProgress

THINK_SECONDS_MAX: Final = 0.6
HOLD_SECONDS_MAX: Final = 5.0
STOP_CHANCE: Final = 0.15
NOTHING_DECIDED: Final = str(PreparedState(-1, -1))


class TakenOver(Exception):
    """Another worker has become the owner of the ledger's page."""


@dataclass(slots=True)
class Page:
    owner: int = 0
    position: int = 0
    state: str = NOTHING_DECIDED


@dataclass(slots=True)
class Ledger:
    """The system that decides: one page for each worker."""

    pages: dict[int, Page] = field(default_factory=dict)

    def take(self, index: int) -> int:
        """Become the owner of a page; its previous owner can no longer decide."""
        page = self.pages.setdefault(index, Page())
        page.owner += 1
        return page.owner

    def decide(self, index: int, owner: int, position: int, state: PreparedState) -> None:
        page = self.pages[index]
        if page.owner != owner:
            raise TakenOver
        page.position, page.state = position, str(state)


class TwoPhaseWorker:
    def __init__(
        self,
        environment: Environment,
        bootstrap: str,
        index: int,
        progress: WorkerProgress,
        dice: random.Random,
        ledger: Ledger,
        *,
        count: int,
    ) -> None:
        self._environment = environment
        self._index = index
        self._progress = progress
        self._dice = dice
        self._ledger = ledger
        self._count = count
        self._settings = {
            "bootstrap.servers": bootstrap,
            "transactional.id": f"two-phase-{index}",
            "transaction.two.phase.commit.enable": "true",
            "request.timeout.ms": "4000",
            "default.api.timeout.ms": "15000",
            "retry.backoff.ms": "50",
            "linger.ms": "0",
            "delivery.timeout.ms": "8000",
            "max.block.ms": "15000",
        }

    async def run(self) -> None:
        """Work until every number is written and every transaction decided."""
        while True:
            try:
                if await self._work():
                    return
            except (ApiError, TakenOver):
                self._progress.failed_count += 1
                await asyncio.sleep(self._dice.uniform(0.05, 0.5))

    async def _work(self) -> bool:
        """Work with one producer until it fails; True when everything is done."""
        owner = self._ledger.take(self._index)
        page = self._ledger.pages[self._index]
        producer = Producer(self._settings, environment=self._environment)
        is_left_alone = False
        try:
            await producer.init_transactions(PATIENCE_S, keeps_prepared=True)
            self._progress.began(producer)
            await producer.complete_transaction(PreparedState.parse(page.state), PATIENCE_S)
            while page.position < self._count:
                position = min(page.position + self._dice.randint(1, CHUNK_MAX), self._count)
                state = await self._prepare(producer, page.position, position)
                if self._dice.random() < STOP_CHANCE:
                    is_left_alone = True
                    resumed = self._resume_replaced(producer, owner, position, state)
                    self._progress.zombies.append(asyncio.ensure_future(resumed))
                    return False
                await asyncio.sleep(self._dice.uniform(0.0, THINK_SECONDS_MAX))
                self._ledger.decide(self._index, owner, position, state)
                if self._dice.random() < STOP_CHANCE:
                    # The decision is made, but the brokers get it only from the next worker.
                    await asyncio.sleep(self._dice.uniform(0.0, HOLD_SECONDS_MAX))
                    return False
                await producer.commit_transaction(PATIENCE_S)
                self._progress.committed_count += 1
            return True
        finally:
            if not is_left_alone:
                await producer.close(0)

    async def _prepare(self, producer: Producer, begin: int, end: int) -> PreparedState:
        producer.begin_transaction()
        for number in range(begin, end):
            sent = await producer.enqueue(OUTPUT, b"%d.%d" % (self._index, number), partition=self._dice.randrange(2))
            # Errors are raised when the transaction is prepared; this only marks them as retrieved.
            sent.add_done_callback(lambda future: future.cancelled() or future.exception())
        return await producer.prepare_transaction()

    async def _resume_replaced(self, producer: Producer, owner: int, position: int, state: PreparedState) -> None:
        """Resume a replaced worker: it must not be able to decide or end transactions of its successor."""
        try:
            await asyncio.sleep(self._dice.uniform(0.0, HOLD_SECONDS_MAX))
            try:
                self._ledger.decide(self._index, owner, position, state)
            except TakenOver:
                self._progress.fenced_count += 1
                await producer.abort_transaction(PATIENCE_S)
                return
            await producer.commit_transaction(PATIENCE_S)
            self._progress.committed_count += 1
        except ApiError:
            self._progress.fenced_count += 1
        finally:
            await producer.close(0)
