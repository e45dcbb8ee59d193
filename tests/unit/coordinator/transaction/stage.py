"""A transaction shard with its log and timers in memory; markers go where the test says."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from millbeck.coordinator.runtime.loader import Loader
from millbeck.coordinator.runtime.result import Result
from millbeck.coordinator.runtime.shard_runner import ShardRunner
from millbeck.coordinator.transaction.ending import EndTransactionRequest
from millbeck.coordinator.transaction.initialization import Initialisation
from millbeck.coordinator.transaction.markers import Markers
from millbeck.coordinator.transaction.records import TransactionRecord
from millbeck.coordinator.transaction.shard import TransactionShard, TransactionShardOptions
from millbeck.coordinator.transaction.transaction import Transaction
from millbeck.kernel.ids import TopicPartition


class Stage:
    def __init__(self, worlds: ModuleType, *, log: Any = None, now_ms: int = 1000, version: int = 2) -> None:
        self.worlds = worlds
        self.log = log or worlds.Log()
        self.scheduler = worlds.Scheduler(now_ms)
        self.sent: list[Markers] = []
        self.version = version
        self.next_producer_id = 100
        self.spare_producer_id: int | None = None
        options = TransactionShardOptions(
            transaction_version=lambda: self.version, spare_producer_id=lambda: self.spare_producer_id
        )
        self.host: ShardRunner[TransactionShard, TransactionRecord] = ShardRunner(
            lambda registry, timers: TransactionShard(registry, timers, options, self),
            appender=self.log,
            scheduler=self.scheduler,
            commit_timeout_ms=5000,
        )
        loader = Loader(
            self.host.shard, iter(self.log.batches), lambda at: self.host.reached(at, self.log.high_watermark)
        )
        while not loader.advance():
            pass
        self.host.loaded(
            end_offset=self.log.end_offset, high_watermark=self.log.high_watermark, now_ms=self.scheduler.now_ms
        )

    def send(self, markers: Markers) -> None:
        self.sent.append(markers)

    def reload(self) -> Stage:
        self.host.close()
        stage = Stage(self.worlds, log=self.log, now_ms=self.scheduler.now_ms, version=self.version)
        stage.next_producer_id = self.next_producer_id
        return stage

    def commit(self) -> None:
        self.log.high_watermark = self.log.end_offset
        self.host.on_high_watermark_advanced(self.log.high_watermark, self.scheduler.now_ms)

    def advance(self, delay_ms: int) -> None:
        self.scheduler.advance(delay_ms, self.commit)

    def run(self, operation: Callable[[TransactionShard], Result[TransactionRecord, Any]], commits: bool = True) -> Any:
        outcome = self.worlds.Outcome()
        self.host.write(operation, outcome.reply, self.scheduler.now_ms)
        if commits:
            self.commit()
        return outcome

    def init(
        self,
        name: str,
        expected: tuple[int, int] | None = None,
        timeout_ms: int = 60_000,
        keeps_prepared: bool = False,
    ) -> Any:
        self.next_producer_id += 1
        asked = Initialisation(
            transactional_id=name,
            timeout_ms=timeout_ms,
            expected=expected,
            new_producer_id=self.next_producer_id,
            keeps_prepared=keeps_prepared,
        )
        return self.run(lambda shard: shard.init_producer_id(asked, self.scheduler.now_ms))

    def add(self, name: str, producer: tuple[int, int], *partitions: TopicPartition) -> Any:
        version = min(self.version, 2)
        return self.run(
            lambda shard: shard.add_partitions(
                name, *producer, partitions, client_version=version, now_ms=self.scheduler.now_ms
            )
        )

    def end(self, name: str, producer: tuple[int, int], is_committed: bool, commits: bool = True) -> Any:
        self.next_producer_id += 1
        asked = EndTransactionRequest(
            transactional_id=name,
            producer_id=producer[0],
            producer_epoch=producer[1],
            is_committed=is_committed,
            client_version=min(self.version, 2),
            new_producer_id=self.next_producer_id,
        )
        return self.run(lambda shard: shard.end(asked, self.scheduler.now_ms), commits)

    def complete(self) -> Any:
        return self.run(lambda shard: shard.complete(self.sent[-1], self.scheduler.now_ms))

    def of(self, name: str) -> Transaction:
        return next(each for each in self.host.shard.transactions() if each.transactional_id == name)
