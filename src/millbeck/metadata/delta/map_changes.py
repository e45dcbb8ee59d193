"""Delta of an immutable mapping, used by most parts of a metadata delta."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class MapDelta(Generic[K, V]):
    """``changed`` has the new value of each changed key, None if it was removed."""

    __slots__ = ("base", "changed")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The value with the changes applied."""
        if key in self.changed:
            return self.changed[key]
        return self.base.get(key)

    def put(self, key: K, value: V) -> None:
        self.changed[key] = value

    def remove(self, key: K) -> None:
        self.changed[key] = None

    def apply(self) -> Mapping[K, V]:
        """Return the mapping with all changes; the base itself if there are none."""
        if not self.changed:
            return self.base
        result = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result
