"""Changes to a mapping that stays as it is: what most aspects of a delta are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class MapChanges(Generic[K, V]):
    """``changed`` holds the new value of each key that was touched, None where it was removed."""

    __slots__ = ("base", "changed")

    def __init__(self, base: Mapping[K, V]) -> None:
        self.base = base
        self.changed: dict[K, V | None] = {}

    def get(self, key: K) -> V | None:
        """The value as of now."""
        if key in self.changed:
            return self.changed[key]
        return self.base.get(key)

    def put(self, key: K, value: V) -> None:
        self.changed[key] = value

    def remove(self, key: K) -> None:
        self.changed[key] = None

    def apply(self) -> Mapping[K, V]:
        """The mapping with all changes; the base itself when there are none."""
        if not self.changed:
            return self.base
        result = dict(self.base)
        for key, value in self.changed.items():
            if value is None:
                result.pop(key, None)
            else:
                result[key] = value
        return result
