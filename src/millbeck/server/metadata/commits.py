"""Publish committed metadata images to the node in order, and complete the requests that wait for a commit.

Images come from two sources. On the active controller (it leads, and everything before its epoch is published), every
batch is appended together with the image it produces, and is queued here until the high watermark passes it. On all
other nodes the images are replayed from the log (`replay`). On loss of leadership the uncommitted images are dropped:
whether their batches survive is up to the next leader, and the log will show it.

Nothing is published before the log has set ``metadata.version``, which is the first record a cluster commits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NamedTuple

from millbeck.kernel.deferred import DeferredQueue
from millbeck.kernel.environment import Environment
from millbeck.metadata.delta import MetadataDelta
from millbeck.metadata.image import EMPTY, MetadataImage
from millbeck.server.metadata.replay import MetadataReplay
from millbeck.storage.log import Log

Subscriber = Callable[[MetadataImage, MetadataDelta], Awaitable[None]]
"""A metadata publisher. It may yield to the event loop while it applies a large delta; the next image comes after it
has returned."""


class _Appended(NamedTuple):
    """An uncommitted batch with the image it produces."""

    end_offset: int
    image: MetadataImage
    delta: MetadataDelta
    size_bytes: int


class MetadataCommits:
    """The commit queue. ``image`` is the last published image; it covers all offsets below ``position``."""

    def __init__(
        self,
        environment: Environment,
        log: Log,
        *,
        spawn: Callable[[Coroutine[Any, Any, None]], object],
        on_published: Callable[[MetadataImage, int], None],
        on_failed: Callable[[Exception], object],
    ) -> None:
        """``on_published`` gets the image and the size in bytes of the batches that led to it."""
        self.image: MetadataImage = EMPTY
        self.appended_image: MetadataImage = EMPTY
        self.position = 0
        self.replay = MetadataReplay(environment, log)
        self.is_deciding = False
        self._log = log
        self._spawn = spawn
        self._on_published = on_published
        self._on_failed = on_failed
        self._subscribers: list[Subscriber] = []
        self._uncommitted: deque[_Appended] = deque()
        # Bounded by the connections: each has at most one request that waits for the controller.
        self._waiting: DeferredQueue[asyncio.Future[None]] = DeferredQueue()
        self._high_watermark = -1
        self._is_publishing = False
        self._is_closed = False

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    # Deciding.

    def on_leadership_gained(self) -> None:
        """Switch to images that are appended together with their batch."""
        assert not self.is_deciding
        image, delta, size_bytes = self.replay.tail(self.image, self.position)
        self.is_deciding = True
        self.appended_image = image
        if self.position < self._log.end_offset:
            self._uncommitted.append(_Appended(self._log.end_offset, image, delta, size_bytes))

    def appended(self, image: MetadataImage, delta: MetadataDelta, size_bytes: int) -> None:
        assert self.is_deciding
        assert image.offset == self._log.end_offset - 1, "the image does not match the log end offset"
        self.appended_image = image
        self._uncommitted.append(_Appended(self._log.end_offset, image, delta, size_bytes))

    def on_leadership_lost(self, error: Exception) -> None:
        """Drop the uncommitted batches; requests waiting for them fail with ``error``."""
        self.is_deciding = False
        self._uncommitted.clear()
        self.appended_image = self.image
        committed = self._waiting.pop_until(self._high_watermark)
        for future in self._waiting.pop_all():
            if not future.done():
                future.set_exception(error)
        for future in committed:
            self._waiting.park(self._high_watermark, future)

    # Waiting.

    async def wait(self, end_offset: int) -> None:
        """Wait until everything below ``end_offset`` is committed and published."""
        if self.position < end_offset:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.park(end_offset, future)
            await future

    def close(self, error: Exception) -> None:
        """Stop publishing; the waiting requests fail with ``error``."""
        self._is_closed = True
        for future in self._waiting.pop_all():
            if not future.done():
                future.set_exception(error)

    # Publishing.

    def moved(self, high_watermark: int) -> None:
        self._high_watermark = max(self._high_watermark, high_watermark)
        if not self._is_publishing and not self._is_closed:
            self._is_publishing = True
            self._spawn(self._publish_all())

    async def _publish_all(self) -> None:
        try:
            while self.position < self._high_watermark and not self._is_closed:
                if self._uncommitted and self._uncommitted[0].end_offset > self._high_watermark:
                    # Several batches produce one image: wait until the last of them is committed.
                    break
                await self._publish_next()
        except Exception as error:
            self._on_failed(error)
        finally:
            self._is_publishing = False

    async def _publish_next(self) -> None:
        if self._uncommitted:
            appended = self._uncommitted.popleft()
        else:
            end_offset = self._high_watermark
            replayed = await self.replay.to(end_offset, image=self.image, position=self.position)
            appended = _Appended(replayed.end_offset, replayed.image, replayed.delta, replayed.size_bytes)
        if appended.image.features.metadata_version:
            self.image = appended.image
            for subscriber in self._subscribers:
                await subscriber(appended.image, appended.delta)
        self.position = appended.end_offset
        self._on_published(appended.image, appended.size_bytes)
        for future in self._waiting.pop_until(self.position):
            if not future.done():
                future.set_result(None)
