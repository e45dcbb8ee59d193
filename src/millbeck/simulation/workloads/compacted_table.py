"""Idempotent producers that write a table, key by key, and readers that follow it or read it from the start.

A record's name (`simulation.histories.table_history`) is in a header, so that tombstones have one too. Readers continue
after whole batches, because compaction leaves gaps and empty batches.
"""

from __future__ import annotations

import asyncio
import random
from typing import Final

from millbeck.records import batch
from millbeck.records.record import Record
from millbeck.simulation.histories.table_history import TableHistory, value_of
from millbeck.simulation.workloads.produce_and_read import (
    FETCH_BYTES,
    REPLY_SECONDS,
    RETRIABLE,
    RETRY_SECONDS,
    TOPIC,
    HistoryProducer,
    HistoryReader,
    InFlight,
    NodeAccess,
    Trouble,
)
from millbeck.simulation.workloads.wire_client import WireClient
from millbeck.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic

NAME_HEADER: Final = "name"
TOMBSTONE_SHARE: Final = 0.15
SCAN_PAUSE_SECONDS_MAX: Final = 3.0


class TableProducer(HistoryProducer):
    def __init__(
        self,
        cluster: NodeAccess,
        history: TableHistory,
        name: str,
        partition: int,
        dice: random.Random,
        *,
        key_count: int,
    ) -> None:
        super().__init__(cluster, history, name, partition, dice)
        self._table = history
        self._key_count = key_count

    def _window(self) -> int:
        """One batch in flight: compaction keeps only the last batch of a producer. An earlier one may be removed before
        its response is received, and its retry would get OUT_OF_ORDER_SEQUENCE_NUMBER, by Kafka's brokers as well."""
        return 1

    def _make(self) -> InFlight:
        sends, records = [], []
        now_ms = self._cluster.environment.clock.wall_ms()
        for _ in range(self._dice.randint(1, 4)):
            self._count += 1
            key = f"k{self._dice.randrange(self._key_count)}"
            is_tombstone = self._dice.random() < TOMBSTONE_SHARE
            value = value_of(key, f"{self._name}-{self._count}", is_tombstone=is_tombstone)
            sends.append(self._history.send(self._name, str(self._partition), value))
            headers = ((NAME_HEADER, value.encode()),)
            records.append(Record(-1, now_ms, key.encode(), None if is_tombstone else b"v" * 8, headers))
        data = batch.build(records, producer_id=self._producer_id, producer_epoch=0, base_sequence=self._sequence)
        self._sequence += len(sends)
        self._batch_count += 1
        return InFlight(data, sends)

    async def _handle_reply(self, reply: asyncio.Future[object]) -> None:
        waiting = self._unanswered[0]
        await super()._handle_reply(reply)
        now_ms = self._cluster.environment.clock.wall_ms()
        for send in waiting.sends:
            self._table.acknowledged_at(send.value, now_ms)


class TableReader(HistoryReader):
    """``position`` is the offset after the last batch read, even if compaction removed its records."""

    def __init__(self, cluster: NodeAccess, history: TableHistory, name: str, partition: int) -> None:
        super().__init__(cluster, history, name, partition)
        self._table = history

    async def scan_again_and_again(self, dice: random.Random) -> None:
        """Repeatedly read everything from the start, until the run is over."""
        while not self._cluster.is_over:
            clock = self._cluster.environment.clock
            began_ms = clock.wall_ms()
            records = await self.read_all()
            self._table.scan(str(self._partition), began_ms, clock.wall_ms(), records)
            await asyncio.sleep(dice.random() * SCAN_PAUSE_SECONDS_MAX)

    async def read_all(self, *, end_offset: int = 0) -> list[tuple[int, str]]:
        self.position = 0
        everything: list[tuple[int, str]] = []
        while True:
            client = await self._cluster.connect()
            try:
                while True:
                    before = self.position
                    everything += await self.poll(client, max_wait_ms=0)
                    if self.position == before:
                        break
                if self.position >= end_offset:
                    return everything
            except Trouble:
                pass
            finally:
                client.close()
            await asyncio.sleep(RETRY_SECONDS)

    async def poll(self, client: WireClient, *, max_wait_ms: int) -> list[tuple[int, str]]:
        wanted = FetchPartition(self._partition, fetch_offset=self.position, partition_max_bytes=FETCH_BYTES)
        request = FetchRequest(
            max_wait_ms=max_wait_ms, min_bytes=1, max_bytes=FETCH_BYTES, topics=[FetchTopic(TOPIC, partitions=[wanted])]
        )
        response = await client.ask(request, 11, timeout_s=REPLY_SECONDS)
        (found,) = response.responses[0].partitions
        if found.error_code in RETRIABLE:
            raise ConnectionError(f"error {found.error_code}")
        assert found.error_code == 0, f"{self._name} at {self.position}: error {found.error_code}"
        records = []
        for one in batch.split(found.records or b"", partial_tail=True):
            if one.header.next_offset <= self.position:
                continue
            records += [
                (record.offset, bytes(record.headers[0][1] or b"").decode())
                for record in batch.records_of(one.data)
                if record.offset >= self.position
            ]
            self.position = one.header.next_offset
        return records
