"""Collects the results of several requests into one: the last result to arrive completes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from millbeck.coordinator.runtime.result import ResponseCallback
from millbeck.kernel.errors import ApiError

T = TypeVar("T")


class ResultCollector(Generic[T]):
    """Collects results in the order of the `ask` calls, in whatever order they arrive."""

    def __init__(self, finish: Callable[[list[T]], object]) -> None:
        self._finish = finish
        self._answers: list[T | None] = []
        self._missing_count = 1  # taken back by `close`

    def ask(self, on_error: Callable[[ApiError], T]) -> ResponseCallback[T]:
        """Add one pending result; ``on_error`` turns an error into a result."""
        index = len(self._answers)
        self._answers.append(None)
        self._missing_count += 1
        return ResponseCallback(
            lambda answer: self._put(index, answer), lambda error: self._put(index, on_error(error))
        )

    def close(self) -> None:
        """Called after the last `ask`: finish if every result has arrived."""
        self._missing_count -= 1
        if self._missing_count == 0:
            self._finish([answer for answer in self._answers if answer is not None])

    def _put(self, index: int, answer: T) -> None:
        self._answers[index] = answer
        self.close()
