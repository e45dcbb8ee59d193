"""Retry with backoff until success, a final error, or the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from millbeck.client.backoff import Backoff
from millbeck.kernel.errors import ApiError

T = TypeVar("T")

_LONGEST_S: Final = 1e9


class Deadline:
    """A deadline on the event loop's clock."""

    __slots__ = ("_at_s", "_loop")

    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._at_s = self._loop.time() + min(timeout_s, _LONGEST_S)

    @property
    def remaining_s(self) -> float:
        """The seconds until the deadline; zero if it has passed."""
        return max(0.0, self._at_s - self._loop.time())

    @property
    def has_passed(self) -> bool:
        return self._loop.time() >= self._at_s


async def retrying(
    attempt: Callable[[Deadline], Awaitable[T]],
    *,
    timeout_s: float,
    backoff: Backoff,
    retries_max: int,
    on_failure: Callable[[ApiError], None] | None = None,
) -> T:
    """Call ``attempt``, with a retry after each retriable `ApiError`; raises the last error at the deadline."""
    deadline = Deadline(timeout_s)
    failures = 0
    before: ApiError | None = None
    while True:
        try:
            return await attempt(deadline)
        except ApiError as error:
            failures += 1
            delay_s = backoff.delay_s(failures)
            if not error.retriable or failures > retries_max or delay_s >= deadline.remaining_s:
                if before is not None and before is not error and error.__cause__ is None:
                    # The error of the previous attempt is more informative than a timeout of the last one.
                    error.__cause__ = before
                raise
            if on_failure is not None:
                on_failure(error)
            before = error
            await asyncio.sleep(delay_s)
