"""Result of a coordinator operation: the records to append and the response to send once they are committed.

An operation does not change hard state; replaying its records does. A classic group's membership is soft state in
memory, so its operations may change it at once and use ``on_failed`` to revert the change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from millbeck.kernel.errors import ApiError

R = TypeVar("R")
T = TypeVar("T")


class ResponseCallback(Generic[T]):
    """Completes one request. The first response counts; later ones are dropped."""

    __slots__ = ("_fail", "_succeed")

    def __init__(self, succeed: Callable[[T], object], fail: Callable[[ApiError], object]) -> None:
        self._succeed: Callable[[T], object] | None = succeed
        self._fail: Callable[[ApiError], object] = fail

    @property
    def is_done(self) -> bool:
        return self._succeed is None

    def reply(self, response: T) -> None:
        succeed, self._succeed = self._succeed, None
        if succeed is not None:
            succeed(response)

    def fail(self, error: ApiError) -> None:
        if self._succeed is not None:
            self._succeed = None
            self._fail(error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(Generic[R, T]):
    records: Sequence[R] = ()
    response: T | None = None
    """Sent once the records are committed; None if the operation completes the reply itself."""
    is_replayed: bool = True
    """False if the operation's soft state already contains the changes of the records."""
    is_atomic: bool = True
    """False if the records may be split into several batches that are each valid alone. If there is also no response, a
    record that cannot be written is skipped."""
    is_size_limited: bool = True
    """False for records that complete an accepted change: they are written even if larger than
    ``max.message.bytes``."""
    on_committed: Callable[[int], None] | None = None
    """Called with ``now_ms`` when the records are committed, before the response is sent."""
    on_failed: Callable[[ApiError, int], None] | None = None
    """Called with the error and ``now_ms`` when the records will never be committed: reverts soft state."""
    on_timeout: Callable[[ApiError], None] | None = None
    """Called when the commit times out: fails pending requests, but the records may still be committed."""
