"""Several questions that make one answer: each has a reply of its own, and the last one gives the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from millbeck.coordinator.runtime.result import Reply
from millbeck.kernel.errors import ApiError

T = TypeVar("T")


class Gather(Generic[T]):
    """Answers come out in the order the questions were asked, whenever they came in."""

    def __init__(self, finish: Callable[[list[T]], object]) -> None:
        self._finish = finish
        self._answers: list[T | None] = []
        self._missing_count = 1  # the one that `close` gives back

    def ask(self, on_error: Callable[[ApiError], T]) -> Reply[T]:
        """A place for one more answer; ``on_error`` makes it of a failure."""
        index = len(self._answers)
        self._answers.append(None)
        self._missing_count += 1
        return Reply(lambda answer: self._put(index, answer), lambda error: self._put(index, on_error(error)))

    def close(self) -> None:
        """Everything is asked."""
        self._missing_count -= 1
        if self._missing_count == 0:
            self._finish([answer for answer in self._answers if answer is not None])

    def _put(self, index: int, answer: T) -> None:
        self._answers[index] = answer
        self.close()
