"""Commits in the background, one after the other, so that a late retry never overwrites a newer offset."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from millbeck.client.committed_offset import CommittedOffset
from millbeck.kernel.errors import ApiError
from millbeck.kernel.ids import TopicPartition

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, CommittedOffset]
CommitCallback = Callable[[Offsets, ApiError | None], None]
"""Called in the event loop with the offsets of a commit, and its error if it has failed."""


class OrderedCommits:
    def __init__(self, spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]) -> None:
        self._spawn = spawn
        self._last: asyncio.Task[None] | None = None

    def submit(
        self, offsets: Offsets, commit: Callable[[], Coroutine[Any, Any, None]], callback: CommitCallback | None
    ) -> asyncio.Task[None]:
        """Commit after all commits before; returns the task that ends, or fails, with the commit."""
        task = self._last = self._spawn(self._commit(self._last, offsets, commit, callback))
        return task

    async def _commit(
        self,
        before: asyncio.Task[None] | None,
        offsets: Offsets,
        commit: Callable[[], Coroutine[Any, Any, None]],
        callback: CommitCallback | None,
    ) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            await commit()
        except ApiError as error:
            if callback is None:
                log.warning("a commit failed: %s", error)
            else:
                _run_callback(callback, offsets, error)
            raise
        if callback is not None:
            _run_callback(callback, offsets, None)

    async def drain(self) -> None:
        """Wait until all commits so far have ended."""
        if self._last is not None:
            await asyncio.wait({self._last})


def _run_callback(callback: CommitCallback, offsets: Offsets, error: ApiError | None) -> None:
    try:
        callback(offsets, error)
    except Exception:
        log.exception("the callback of a commit failed")
