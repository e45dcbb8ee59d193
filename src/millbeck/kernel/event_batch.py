"""Event batch: the work collected in one iteration of the event loop, done once at its end, in a fixed order.

Handlers only add work. At the end of the batch come, in this order: staged appends (one vectored write per partition),
high watermarks, completions, responses. So no handler calls into another connection, and a burst of requests for one
partition costs one system call. Work that a step adds for an earlier step is done in the next batch, so a batch always
ends.

The first added item schedules the end of the batch. A caller that is the only event of the iteration may instead
`begin` the batch before its handlers and `end` it after them, which saves an iteration of the event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class StagedAppends(Protocol):
    def write(self) -> None:
        """Write the staged batches; `advance_high_watermark` follows in the same event batch."""

    def advance_high_watermark(self) -> None: ...


class PendingReplies(Protocol):
    def flush_replies(self) -> None: ...


class EventBatch:
    __slots__ = (
        "_appends",
        "_completions",
        "_is_alone",
        "_is_scheduled",
        "_replies",
        "_report",
        "_schedule",
        "_watermarks",
    )

    def __init__(
        self,
        schedule: Callable[[Callable[[], None]], object],
        report: Callable[[Exception], None],
        is_alone: Callable[[], bool] | None = None,
    ) -> None:
        """``schedule`` runs a callback at the end of the loop iteration (``loop.call_soon``). ``report`` is called
        with an unexpected exception of a step: the other steps continue, since one connection's bug must not affect
        another. ``is_alone`` returns whether the current event is the only one in this iteration.
        """
        self._schedule = schedule
        self._report = report
        self._is_alone = is_alone
        self._is_scheduled = False
        self._appends: list[StagedAppends] = []
        self._watermarks: list[StagedAppends] = []
        self._completions: list[Callable[[], None]] = []
        self._replies: list[PendingReplies] = []

    def begin(self) -> bool:
        """Begin a batch if the caller is the only event of this iteration. Returns True if so; the caller must then
        call `end`."""
        if self._is_scheduled or self._is_alone is None or not self._is_alone():
            return False
        self._is_scheduled = True
        return True

    def end(self) -> None:
        self._run()

    def add_append(self, partition: StagedAppends) -> None:
        """Add a partition with staged batches; it must do so only once before they are written."""
        self._appends.append(partition)
        if not self._is_scheduled:
            self._arrange()

    def add_high_watermark(self, partition: StagedAppends) -> None:
        self._watermarks.append(partition)
        if not self._is_scheduled:
            self._arrange()

    def add_completion(self, callback: Callable[[], None]) -> None:
        self._completions.append(callback)
        if not self._is_scheduled:
            self._arrange()

    def mark_replies(self, connection: PendingReplies) -> None:
        self._replies.append(connection)
        if not self._is_scheduled:
            self._arrange()

    def _arrange(self) -> None:
        self._is_scheduled = True
        self._schedule(self._run)

    def _run(self) -> None:
        # Work added from here on goes into another batch, unless its step is still to come in this one.
        appends, self._appends = self._appends, []
        for partition in appends:
            try:
                partition.write()
            except Exception as error:
                self._report(error)
        watermarks, self._watermarks = self._watermarks, []
        for partition in appends + watermarks:
            try:
                partition.advance_high_watermark()
            except Exception as error:
                self._report(error)
        completions, self._completions = self._completions, []
        for complete in completions:
            try:
                complete()
            except Exception as error:
                self._report(error)
        replies, self._replies = self._replies, []
        for connection in replies:
            try:
                connection.flush_replies()
            except Exception as error:
                self._report(error)
        self._is_scheduled = False
        if self._appends or self._watermarks or self._completions or self._replies:
            self._arrange()
