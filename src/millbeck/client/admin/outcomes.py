"""The result of each item of an admin call, where some items may fail while others succeed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, TypeVar

from millbeck.client.cluster import Cluster
from millbeck.client.retry import Deadline
from millbeck.kernel.errors import (
    ApiError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    LeaderNotAvailable,
    NetworkException,
    NotController,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    ThrottlingQuotaExceeded,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnstableOffsetCommit,
)

K = TypeVar("K")
V = TypeVar("V")

PASSING: Final = (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    LeaderNotAvailable,
    NetworkException,
    NotController,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    ThrottlingQuotaExceeded,
    UnknownLeaderEpoch,
    UnstableOffsetCommit,
)
"""Errors of single items that are retried. An unknown topic is a final answer and not among them."""


class Outcomes(Generic[K, V]):
    """The results by item. Reading a failed item raises its error; `succeeded` and `failed` are the two subsets."""

    __slots__ = ("failed", "succeeded")

    def __init__(self, outcomes: Mapping[K, V | ApiError]) -> None:
        self.succeeded: dict[K, V] = {}
        self.failed: dict[K, ApiError] = {}
        for key, outcome in outcomes.items():
            if isinstance(outcome, ApiError):
                self.failed[key] = outcome
            else:
                self.succeeded[key] = outcome

    def __getitem__(self, key: K) -> V:
        if key in self.failed:
            raise self.failed[key]
        return self.succeeded[key]

    def __iter__(self) -> Iterator[K]:
        yield from self.succeeded
        yield from self.failed

    def __len__(self) -> int:
        return len(self.succeeded) + len(self.failed)

    def __repr__(self) -> str:
        return f"Outcomes(succeeded={self.succeeded!r}, failed={self.failed!r})"

    def all(self) -> dict[K, V]:
        """All results; raises the first error if there is one."""
        for error in self.failed.values():
            raise error
        return self.succeeded


Attempt = Callable[[list[K], Deadline], Awaitable[Mapping[K, V | ApiError]]]


async def for_each(
    cluster: Cluster, items: Iterable[K], attempt: Attempt[K, V], *, timeout_s: float | None
) -> Outcomes[K, V]:
    """Request all items, then retry those with a retriable error, until the deadline.

    Raises only if no request was answered. An item missing in the response becomes an `UnknownServerError`.
    """
    order = list(dict.fromkeys(items))
    pending = list(order)
    outcomes: dict[K, V | ApiError] = {}
    if not pending:
        return Outcomes(outcomes)

    async def once(deadline: Deadline) -> None:
        answers = await attempt(list(pending), deadline)
        for item in pending:
            answer = answers.get(item)
            outcomes[item] = UnknownServerError(f"no answer for {item}") if answer is None else answer
        pending[:] = [item for item in pending if isinstance(outcomes[item], PASSING)]
        if pending:
            error = outcomes[pending[0]]
            assert isinstance(error, ApiError)
            raise error

    try:
        await cluster.retrying(once, timeout_s=timeout_s)
    except ApiError:
        if len(outcomes) < len(order):
            raise
    return Outcomes({item: outcomes[item] for item in order})
