"""A description of a topology for users: its shuffles (repartitions in Kafka Streams) and state stores."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Shuffle:
    reason: str


@dataclass(frozen=True, slots=True)
class Store:
    name: str
    holds: str
    bytes_per_key: int | None = None
    """An estimate of its size; None if it is not known."""
    counted: str = "key"
    """What the estimate is for."""


@dataclass(slots=True)
class TopologyDescription:
    """Filled while the topology is built."""

    sources: list[str] = field(default_factory=list)
    shuffles: list[Shuffle] = field(default_factory=list)
    stores: list[Store] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def store(
        self, name: str | None, kind: str, holds: str, *, bytes_per_key: int | None = None, counted: str = "key"
    ) -> str:
        """Add a store; returns its unique name: the given one or its kind, with a number if needed."""
        chosen = name or f"{kind}-{sum(one.name.startswith(f'{kind}-') for one in self.stores) + 1}"
        number = 1
        while any(one.name == chosen for one in self.stores):
            number += 1
            chosen = f"{name or kind}-{number}"
        self.stores.append(Store(chosen, holds, bytes_per_key, counted))
        return chosen

    def shuffled(self, reason: str) -> None:
        self.shuffles.append(Shuffle(reason))

    def lines(self) -> list[str]:
        lines = [f"reads    {topic}" for topic in self.sources]
        lines += [f"shuffle  {shuffle.reason}" for shuffle in self.shuffles]
        lines += [f"store    {store.name}: {store.holds}" for store in self.stores]
        lines += [f"writes   {topic}" for topic in self.outputs]
        return lines
