"""A cache of answers, including "not found"; limited in number, and optionally in time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from millbeck.client.schemas.errors import UnknownSchema

T = TypeVar("T")


class _Entry(NamedTuple, Generic[T]):
    value: T | UnknownSchema
    expires_s: float | None


class AnswerCache(Generic[T]):
    """The cache. ``ttl_s`` None keeps answers forever; "not found" is cached for ``missing_ttl_s``."""

    def __init__(self, capacity: int, *, ttl_s: float | None, missing_ttl_s: float) -> None:
        self._capacity = capacity
        self._ttl_s = ttl_s
        self._missing_ttl_s = missing_ttl_s
        self._entries: OrderedDict[Hashable, _Entry[T]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """The cached answer, or else that of ``ask``. Raises the errors of ``ask``; `UnknownSchema` may come from the
        cache."""
        now = time.monotonic()
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and (entry.expires_s is None or now < entry.expires_s):
                self._entries.move_to_end(key)
                if isinstance(entry.value, UnknownSchema):
                    raise UnknownSchema(str(entry.value))
                return entry.value
        try:
            value = ask()
        except UnknownSchema as error:
            if self._missing_ttl_s > 0:
                self._keep(key, _Entry(error.with_traceback(None), now + self._missing_ttl_s))
            raise
        self._keep(key, _Entry(value, None if self._ttl_s is None else now + self._ttl_s))
        return value

    def forget(self, key: Hashable) -> None:
        with self._lock:
            self._entries.pop(key, None)

    def _keep(self, key: Hashable, entry: _Entry[T]) -> None:
        with self._lock:
            self._entries[key] = entry
            self._entries.move_to_end(key)
            if len(self._entries) > self._capacity:
                self._entries.popitem(last=False)
