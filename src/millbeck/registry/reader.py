"""Reads ``_schemas`` into the state, from its first record to its last, and then follows it.

It reads committed records only. Every instance has a reader, including the leader: the leader's own writes reach its
state through the log, like those of others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

from millbeck.client.config import Value
from millbeck.client.consumer import Consumer
from millbeck.kernel.environment import Environment
from millbeck.kernel.errors import ApiError, OffsetOutOfRange
from millbeck.kernel.ids import TopicPartition
from millbeck.registry.state import RegistryState

log = logging.getLogger(__name__)

CLEAN_HEADER: Final = "millbeck.clean"
"""A header of a NOOP record: all aborted writes before it have been undone."""
_POLL_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 0.2
_RECORDS_PER_TURN: Final = 500


class Reader:
    def __init__(
        self,
        environment: Environment,
        settings: Mapping[str, Value],
        topic: str,
        *,
        on_replaced: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_replaced`` is called when the log was replaced or truncated, so that everything is read again."""
        self.state = RegistryState()
        self.offset = -1
        """The offset of the last record in the state."""
        self.clean_offset = 0
        """The offset below which all aborted writes have been undone."""
        self.end_offset = -1
        """The last known end of the log; -1 before the first request."""
        self.has_started = False
        """Whether the log has been read up to its end at start."""
        self._environment = environment
        self._settings = {**settings, "isolation.level": "read_committed", "auto.offset.reset": "none"}
        self._partition = TopicPartition(topic, 0)
        self._on_replaced = on_replaced
        self._waiting: dict[asyncio.Future[None], int] = {}

    async def run(self) -> None:
        """Follow the log until cancelled."""
        while True:
            try:
                async with Consumer(self._settings, environment=self._environment) as consumer:
                    consumer.assign([self._partition])
                    consumer.seek_to_beginning(self._partition)
                    # After a failure everything is read again; until then the state stays as it is.
                    await self._follow(consumer)
            except OffsetOutOfRange as error:
                log.warning("%s is read again from its beginning: %s", self._partition.topic, error)
                self._replace(RegistryState())
                self._on_replaced()
            except ApiError as error:
                log.warning("%s cannot be read: %s", self._partition.topic, error)
            await asyncio.sleep(_RETRY_SECONDS)

    async def _follow(self, consumer: Consumer) -> None:
        state, offset, clean_offset = RegistryState(), -1, 0
        target = (await consumer.end_offsets([self._partition]))[self._partition]
        self.end_offset = max(self.end_offset, target)
        is_current = False
        while True:
            if not is_current and await consumer.position(self._partition) >= target:
                if offset < self.offset:
                    log.warning("%s ends at %d, but was read up to %d", self._partition.topic, offset, self.offset)
                    self._on_replaced()
                self._replace(state, offset, clean_offset)
                self.has_started = is_current = True
            found = await consumer.poll(timeout_s=_POLL_SECONDS if is_current else 0.1, max_records=_RECORDS_PER_TURN)
            for record in found.get(self._partition, ()):
                state.replay(record.key, record.value)
                offset = record.offset
                if any(name == CLEAN_HEADER for name, _ in record.headers):
                    clean_offset = offset
            if is_current and found:
                self.offset, self.clean_offset = offset, clean_offset
                self.end_offset = max(self.end_offset, offset + 1)
                self._wake()

    def _replace(self, state: RegistryState, offset: int = -1, clean_offset: int = 0) -> None:
        self.state, self.offset, self.clean_offset = state, offset, clean_offset
        self._wake()

    def _wake(self) -> None:
        for waiter, wanted in list(self._waiting.items()):
            if self.offset >= wanted:
                del self._waiting[waiter]
                if not waiter.done():
                    waiter.set_result(None)

    async def wait_for(self, offset: int, timeout_s: float) -> bool:
        """Wait until the state has the record at this offset; returns whether it has."""
        if self.offset >= offset:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[waiter] = offset
        try:
            await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            return self.offset >= offset
        finally:
            self._waiting.pop(waiter, None)
        return True
