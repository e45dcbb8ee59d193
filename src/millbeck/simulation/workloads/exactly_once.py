"""Consume, transform, produce: workers that move numbers from one topic to another in transactions, exactly once.

Each worker has a partition of the input, a transactional id and the offset it has committed. A transaction reads some
numbers, writes them and commits the input offset. After any error the worker starts again from the committed offset,
with a new producer with the same transactional id; sometimes the old producer is left with its open transaction, to be
fenced. Each number must be in the output exactly once.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from millbeck.client.committed_offset import CommittedOffset
from millbeck.client.consumer import Consumer, commits
from millbeck.client.producer import Producer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition

INPUT: Final = "numbers"
OUTPUT: Final = "copies"
GROUP: Final = "copying"
PATIENCE_S: Final = 20.0
CHUNK_MAX: Final = 4
THINK_SECONDS_MAX: Final = 0.6


@dataclass(slots=True)
class WorkerProgress:
    """Events that the workers observed."""

    committed_count: int = 0
    aborted_count: int = 0
    failed_count: int = 0
    fenced_count: int = 0
    zombies: list[asyncio.Task[None]] = field(default_factory=list)
    given: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """The producer id and epoch with which each producer began, by transactional id."""

    def began(self, producer: Producer) -> None:
        identity = producer.transactions.identity
        assert identity is not None
        self.given.setdefault(producer.transactions.transactional_id, []).append(identity[:2])

    def unfenced(self) -> list[str]:
        """The producers whose epoch did not advance beyond that of their predecessor."""
        return [
            f"{name}: {after} after {before}"
            for name, pairs in self.given.items()
            for before, after in pairwise(pairs)
            if before[0] == after[0] and before[1] >= after[1]
        ]


class Worker:
    def __init__(
        self,
        environment: Environment,
        bootstrap: str,
        partition: int,
        progress: WorkerProgress,
        dice: random.Random,
        *,
        count: int,
        transaction_timeout_ms: int = 10_000,
    ) -> None:
        self._environment = environment
        self._bootstrap = bootstrap
        self._place = TopicPartition(INPUT, partition)
        self._progress = progress
        self._dice = dice
        self._count = count
        self._timeout_ms = transaction_timeout_ms

    def _settings(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self._bootstrap,
            "request.timeout.ms": "4000",
            "default.api.timeout.ms": "15000",
            "retry.backoff.ms": "50",
        }

    def _producer(self) -> Producer:
        return Producer(
            {
                **self._settings(),
                "transactional.id": f"worker-{self._place.partition}",
                "transaction.timeout.ms": str(self._timeout_ms),
                "linger.ms": "0",
                "delivery.timeout.ms": "8000",
                "max.block.ms": "15000",
            },
            environment=self._environment,
        )

    async def run(self) -> None:
        """Work until every number of the partition is copied."""
        while True:
            try:
                if await self._work():
                    return
            except ApiError:
                self._progress.failed_count += 1
                await asyncio.sleep(self._dice.uniform(0.05, 0.5))

    async def _work(self) -> bool:
        """Work with one producer until it fails; True when everything is copied."""
        producer = self._producer()
        is_left_alone = False
        settings = {
            **self._settings(),
            "group.id": GROUP,
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
        }
        consumer = Consumer(settings, environment=self._environment)
        try:
            await producer.init_transactions(PATIENCE_S)
            self._progress.began(producer)
            consumer.assign([self._place])
            position = await self._committed(consumer)
            consumer.seek(self._place, position)
            while position < self._count:
                values = await self._read(consumer)
                if not values:
                    continue
                await asyncio.sleep(self._dice.uniform(0.0, THINK_SECONDS_MAX))
                producer.begin_transaction()
                for value in values.values():
                    sent = await producer.enqueue(OUTPUT, value, partition=self._dice.randrange(2))
                    # Errors are raised at the end of the transaction; this only marks them as retrieved.
                    sent.add_done_callback(lambda future: future.cancelled() or future.exception())
                if self._dice.random() < 0.06:
                    is_left_alone = True
                    self._progress.zombies.append(
                        asyncio.ensure_future(self._resume_replaced(producer, max(values) + 1))
                    )
                    return False
                await producer.send_offsets(GROUP, {self._place: CommittedOffset(max(values) + 1)})
                if self._dice.random() < 0.15:
                    await producer.abort_transaction(PATIENCE_S)
                    self._progress.aborted_count += 1
                    consumer.seek(self._place, position)
                    continue
                await producer.commit_transaction(PATIENCE_S)
                self._progress.committed_count += 1
                position = max(values) + 1
            return True
        finally:
            if not is_left_alone:
                await producer.close(0)
            await consumer.close()

    async def _committed(self, consumer: Consumer) -> int:
        """The committed offset; waits while a transaction with a pending offset is undecided."""
        found = await commits.committed(
            consumer.cluster, GROUP, [self._place], timeout_s=PATIENCE_S, require_stable=True
        )
        return found[self._place].offset if self._place in found else 0

    async def _read(self, consumer: Consumer) -> Mapping[int, bytes]:
        polled = await consumer.poll(timeout_s=1.0, max_records=self._dice.randint(1, CHUNK_MAX))
        return {record.offset: record.value or b"" for record in polled.get(self._place, [])}

    async def _resume_replaced(self, producer: Producer, position: int) -> None:
        """Continue with a producer that was replaced while it hung: it must be fenced."""
        try:
            await asyncio.sleep(self._dice.uniform(0.0, 6.0))
            await producer.send_offsets(GROUP, {self._place: CommittedOffset(position)}, timeout_s=PATIENCE_S)
            await producer.commit_transaction(PATIENCE_S)
            self._progress.committed_count += 1
        except ApiError:
            self._progress.fenced_count += 1
        finally:
            await producer.close(0)
