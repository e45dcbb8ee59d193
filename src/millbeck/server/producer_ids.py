"""Producer ids for this broker's clients, taken from the controller in blocks.

The controller writes down each block before it hands it out, so an id is never given twice, whatever crashes. The next
block is asked for when a tenth of the current one is left, so that clients seldom wait for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from millbeck.controller.producer_ids import ProducerIdBlock

PREFETCH_AT_SHARE: Final = 0.9


class ProducerIds:
    def __init__(
        self,
        allocate: Callable[[], Awaitable[ProducerIdBlock]],
        spawn: Callable[[Coroutine[Any, Any, None]], object],
    ) -> None:
        self._allocate = allocate
        self._spawn = spawn
        self._block: ProducerIdBlock | None = None
        self._next = 0
        self._following: ProducerIdBlock | None = None
        self._lock = asyncio.Lock()
        self._is_prefetching = False

    async def take(self) -> int:
        """An id that nobody else has or will get."""
        if self._block is None or self._next >= self._block.next_first:
            await self._advance()
        assert self._block is not None
        taken = self._next
        self._next += 1
        used = self._next - self._block.first
        if used >= self._block.size * PREFETCH_AT_SHARE and self._following is None and not self._is_prefetching:
            self._is_prefetching = True
            self._spawn(self._prefetch())
        return taken

    async def _advance(self) -> None:
        async with self._lock:
            if self._block is not None and self._next < self._block.next_first:
                return
            block = self._following or await self._allocate()
            self._following = None
            self._block = block
            self._next = block.first

    async def _prefetch(self) -> None:
        try:
            async with self._lock:
                if self._following is None:
                    self._following = await self._allocate()
        finally:
            self._is_prefetching = False
