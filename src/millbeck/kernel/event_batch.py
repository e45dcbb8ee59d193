"""One loop turn: what handlers marked is done once, in a fixed order, after all of them have run.

Handlers only mark. At the end of the turn come, in this order: gathered appends (one vectored write for each
partition), high watermarks, completions, replies. Nothing re-enters another connection from inside a handler, and a
burst of requests for one partition costs one system call. What a step marks for an earlier step waits for the next
turn, so a turn always ends.

A turn is arranged with the first mark. Whoever knows that nobody else will mark anything before the loop looks at its
descriptors again, `begin`s the turn before the handlers and `end`s it behind them, without another round of the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Appends(Protocol):
    def write(self) -> None:
        """Write what was staged and settle it; must not raise."""

    def advance_high_watermark(self) -> None: ...


class Replies(Protocol):
    def flush_replies(self) -> None: ...


class Turn:
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
        """``schedule`` runs a callback at the end of the loop turn (``loop.call_soon``); ``report`` gets what a step
        raised by mistake: the other steps go on, since one connection's bug must not cost another its reply.
        ``is_alone`` says whether what runs now is the only event that the loop serves in this turn."""
        self._schedule = schedule
        self._report = report
        self._is_alone = is_alone
        self._is_scheduled = False
        self._appends: list[Appends] = []
        self._watermarks: list[Appends] = []
        self._completions: list[Callable[[], None]] = []
        self._replies: list[Replies] = []

    def begin(self) -> bool:
        """True when the caller is alone in this turn: it must call `end`, which does what was marked in between."""
        if self._is_scheduled or self._is_alone is None or not self._is_alone():
            return False
        self._is_scheduled = True
        return True

    def end(self) -> None:
        self._run()

    def mark_append(self, partition: Appends) -> None:
        """``partition`` has staged batches. Each partition marks itself once until it is written."""
        self._appends.append(partition)
        if not self._is_scheduled:
            self._arrange()

    def mark_watermark(self, partition: Appends) -> None:
        self._watermarks.append(partition)
        if not self._is_scheduled:
            self._arrange()

    def mark_completion(self, callback: Callable[[], None]) -> None:
        self._completions.append(callback)
        if not self._is_scheduled:
            self._arrange()

    def mark_replies(self, connection: Replies) -> None:
        self._replies.append(connection)
        if not self._is_scheduled:
            self._arrange()

    def _arrange(self) -> None:
        self._is_scheduled = True
        self._schedule(self._run)

    def _run(self) -> None:
        # Marks made from here on arrange another turn unless their step is still to come in this one.
        appends, self._appends = self._appends, []
        for partition in appends:
            try:
                partition.write()
            except Exception as error:
                self._report(error)
        watermarks, self._watermarks = self._watermarks, []
        for partition in watermarks:
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
