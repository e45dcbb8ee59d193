"""The one writer of ``_schemas``, fenced by the log.

All leaders share one transactional id. InitProducerId fences the previous leader: no write of an older leader can be
committed any more, however long it was paused. Only then does the new leader read the log to its end, so that its state
has every write that was ever acknowledged. `open` does this in the following order:

1. fence;
2. write a NOOP and wait until the reader has it: everything before it is in the state;
3. undo the aborted writes of older leaders (`undoing`), complete deletes that left a byte form of a key, and keep the
   highest id where another registry has deleted it.

A write is one transaction. Its answer is sent when it is committed and in the state. If anything fails in between, the
writer is closed: whether the write succeeded is only known after the next `open`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Final, Self

from millbeck.client.config import Value
from millbeck.client.consumer import Consumer
from millbeck.client.producer import Producer
from millbeck.client.producer.batch import RecordFuture
from millbeck.client.schemas.log_records import KeyType, LogKey, LogRecord, encode_key
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition
from millbeck.registry.errors import StoreTimeout
from millbeck.registry.reader import CLEAN_HEADER, Reader
from millbeck.registry.undoing import aborted_keys, undo

log = logging.getLogger(__name__)

NOOP: Final = LogRecord(encode_key(LogKey(KeyType.NOOP)), None)


def transactional_id(topic: str) -> str:
    """The transactional id, the same for all groups of instances on a topic, so that two groups fence each other."""
    return f"millbeck-schema-registry-{topic}"


class Writer:
    def __init__(
        self, environment: Environment, settings: Mapping[str, Value], topic: str, reader: Reader, *, timeout_s: float
    ) -> None:
        self._environment = environment
        self._settings = settings
        self._topic = topic
        self._reader = reader
        self._timeout_s = timeout_s
        timeout_ms = max(1, int(timeout_s * 1000))
        self._producer = Producer(
            {
                **settings,
                "transactional.id": transactional_id(topic),
                "transaction.timeout.ms": timeout_ms,
                "delivery.timeout.ms": timeout_ms,
                "request.timeout.ms": timeout_ms,
                "max.block.ms": timeout_ms,
                "linger.ms": 0,
            },
            environment=environment,
        )

    @classmethod
    async def open(
        cls, environment: Environment, settings: Mapping[str, Value], topic: str, reader: Reader, *, timeout_s: float
    ) -> Self:
        """Fence the previous writer, and read its writes. Raises `ApiError` or `StoreTimeout`."""
        writer = cls(environment, settings, topic, reader, timeout_s=timeout_s)
        try:
            await writer._begin()
        except BaseException:
            await writer.close()
            raise
        return writer

    async def _begin(self) -> None:
        await self._fence()
        start = self._reader.clean_offset
        end = await self._end()
        aborted = await aborted_keys(self._environment, self._settings, self._topic, start=start, end=end)
        await self._catch_up(is_clean=not aborted)
        state = self._reader.state
        records = [*undo(state, aborted), *state.leftover_tombstones(), *state.missing_id_floor_records()]
        if records:
            if aborted:
                log.warning("%s: undoing %d aborted writes of earlier leaders", self._topic, len(aborted))
            await self.write(records)
            await self._catch_up(is_clean=True)

    async def _fence(self) -> None:
        await self._producer.init_transactions(self._timeout_s)

    async def _end(self) -> int:
        """The end of the uncommitted records; no transaction of an older leader is open any more."""
        partition = TopicPartition(self._topic, 0)
        async with Consumer(
            {**self._settings, "isolation.level": "read_uncommitted"}, environment=self._environment
        ) as consumer:
            return (await consumer.end_offsets([partition], timeout_s=self._timeout_s))[partition]

    async def _catch_up(self, *, is_clean: bool) -> None:
        headers = [(CLEAN_HEADER, b"")] if is_clean else []
        await self.write([NOOP], headers=headers)

    async def write(self, records: Sequence[LogRecord], *, headers: Sequence[tuple[str, bytes]] = ()) -> int:
        """Write the records in one transaction, and wait until they are in the state; returns the last one's offset.

        Raises `ApiError` or `StoreTimeout`, after which the writer must not be used any more.
        """
        async with asyncio.timeout(self._timeout_s):
            offset = await self._commit(records, headers)
        if not await self._reader.wait_for(offset, self._timeout_s):
            raise StoreTimeout(f"{self._topic} was written up to {offset} and could not be read in time")
        return offset

    async def _commit(self, records: Sequence[LogRecord], headers: Sequence[tuple[str, bytes]]) -> int:
        producer = self._producer
        producer.begin_transaction()
        stored: list[RecordFuture] = []
        for record in records:
            future = await producer.enqueue(self._topic, record.value, key=record.key, partition=0, headers=headers)
            future.add_done_callback(_noted)
            stored.append(future)
        await producer.commit_transaction()
        return (await stored[-1]).offset

    async def close(self) -> None:
        try:
            await self._producer.close(0)
        except ApiError as error:
            log.debug("closing the writer: %s", error)


def _noted(stored: RecordFuture) -> None:
    """Take note of a failure, which asyncio would otherwise report; the commit raises it for the whole transaction."""
    if not stored.cancelled():
        stored.exception()
