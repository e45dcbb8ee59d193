"""What a coordinator operation hands back: the records that make its decision durable, and the answer to give then.

An operation decides and changes no hard state; the records do, when they are replayed. A classic group's membership is
soft state that lives in memory between two records, so its operations may change it at once and say in ``on_failed``
how to take that back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from millbeck.kernel.errors import ApiError

R = TypeVar("R")
T = TypeVar("T")


class Reply(Generic[T]):
    """The place one request's answer goes. The first answer counts; later ones are dropped."""

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
    """Given once the records are committed; None when the operation answers the reply itself."""
    is_replayed: bool = True
    """False when the operation's soft state already shows what the records say."""
    is_atomic: bool = True
    """False when the records may be spread over several batches, each of them valid alone."""
    on_committed: Callable[[int], None] | None = None
    """Called with ``now_ms`` when the records are committed, before the response is given."""
    on_failed: Callable[[ApiError, int], None] | None = None
    """Called with the error and ``now_ms`` when the records will never be committed: take back what shows them."""
    on_timeout: Callable[[ApiError], None] | None = None
    """Called when the records are not committed in time: answer whoever waits, but they may be committed yet."""
