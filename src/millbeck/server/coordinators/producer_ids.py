"""Allocate producer ids for clients from blocks that the controller assigns to this broker.

The controller commits each block to the metadata log before it assigns it, so an id is never used twice, even after
crashes. The next block is requested when a tenth of the current one is left, so that clients rarely have to wait. When
no id is left, the client gets COORDINATOR_LOAD_IN_PROGRESS at once, as from Kafka's brokers, and retries: there may be
no active controller to wait for. Only on a single-node cluster does the client wait, for one local sync.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from millbeck.controller.producer_ids import ProducerIdBlock
from millbeck.kernel.errors import ApiError, CoordinatorLoadInProgress

PREFETCH_AT_SHARE: Final = 0.9

log = logging.getLogger(__name__)


class ProducerIds:
    def __init__(
        self,
        allocate: Callable[[], Awaitable[ProducerIdBlock]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        is_alone: Callable[[], bool],
    ) -> None:
        """``allocate`` raises `ApiError` when no controller responds in time."""
        self._allocate = allocate
        self._spawn = spawn
        self._is_alone = is_alone
        self._block: ProducerIdBlock | None = None
        self._next = 0
        self._following: ProducerIdBlock | None = None
        self._allocation: asyncio.Event | None = None
        """Set when the pending allocation has ended."""

    async def take(self) -> int:
        """A new unique producer id; raises `CoordinatorLoadInProgress` when this broker has none left."""
        taken = self.take_nowait()
        if taken is None:
            ended = self._start_allocation()
            if self._is_alone():
                await ended.wait()
                taken = self.take_nowait()
            if taken is None:
                raise CoordinatorLoadInProgress
        return taken

    def take_nowait(self) -> int | None:
        """As `take`, but None when this broker's blocks are used up."""
        if not self._has_ids():
            return None
        assert self._block is not None
        taken = self._next
        self._next += 1
        if self._next - self._block.first >= self._block.size * PREFETCH_AT_SHARE and self._following is None:
            self._start_allocation()
        return taken

    def _has_ids(self) -> bool:
        """Whether an id is left; moves on to the next block when the current one is used up."""
        if self._block is not None and self._next < self._block.next_first:
            return True
        if self._following is None:
            return False
        self._block, self._following = self._following, None
        self._next = self._block.first
        return True

    def _start_allocation(self) -> asyncio.Event:
        if self._allocation is None:
            self._allocation = asyncio.Event()
            self._spawn(self._fetch(self._allocation))
        return self._allocation

    async def _fetch(self, ended: asyncio.Event) -> None:
        try:
            self._following = await self._allocate()
        except ApiError as error:
            log.warning("could not get a block of producer ids from the controller: %s", error)
        finally:
            self._allocation = None
            ended.set()
