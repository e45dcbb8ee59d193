"""The metrics of one client, by group, name and tags as Kafka's Java clients name them.

for name, value in producer.metrics().items():
    print(name.group, name.name, name.tags, value)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple, TypeVar

from millbeck.client.metrics.sampled import Average, Meter, Window

Tags = tuple[tuple[str, str], ...]

Rows = Iterable[tuple[str, Tags, float]]
"""Names, further tags and values of a group."""

S = TypeVar("S", Meter, Average)


class MetricName(NamedTuple):
    """A metric's name; ``tags`` are pairs of name and value, sorted: ``(("client-id", "millbeck"),)``."""

    group: str
    name: str
    tags: Tags


class ClientMetrics:
    def __init__(self, kind: str, client_id: str, now_s: Callable[[], float], window: Window) -> None:
        """``kind`` begins the names of groups: producer, consumer, consumer-share, admin-client."""
        self.kind = kind
        self.now_s = now_s
        self.client_tags: Tags = (("client-id", client_id),)
        self.window = window
        self._readers: dict[MetricName, Callable[[float], float]] = {}
        self._families: list[tuple[str, Callable[[], Rows]]] = []

    def meter(self, group: str, name: str, tags: Tags = ()) -> Meter:
        """A meter with the metrics ``name-rate`` and ``name-total``."""
        found = Meter(self.window)
        self._readers[self._named(group, f"{name}-rate", tags)] = found.rate
        self._readers[self._named(group, f"{name}-total", tags)] = partial(_total, found)
        return found

    def average(self, group: str, name: str, tags: Tags = (), *, has_maximum: bool = True) -> Average:
        """An average with the metrics ``name-avg`` and ``name-max``."""
        found = Average(self.window)
        self._readers[self._named(group, f"{name}-avg", tags)] = found.average
        if has_maximum:
            self._readers[self._named(group, f"{name}-max", tags)] = found.maximum
        return found

    def gauge(self, group: str, name: str, read: Callable[[float], float], tags: Tags = ()) -> None:
        """A metric whose value is computed when it is read; ``read`` gets the time in seconds."""
        self._readers[self._named(group, name, tags)] = read

    def family(self, group: str, rows: Callable[[], Rows]) -> None:
        """Metrics whose tag values change, such as those of partitions."""
        self._families.append((group, rows))

    def _named(self, group: str, name: str, tags: Tags) -> MetricName:
        return MetricName(group, name, tuple(sorted((*self.client_tags, *tags))))

    def read(self) -> dict[MetricName, float]:
        """All values now."""
        now_s = self.now_s()
        values = {name: read(now_s) for name, read in self._readers.items()}
        for group, rows in self._families:
            for name, tags, value in rows():
                values[self._named(group, name, tags)] = value
        return values


def _total(found: Meter, now_s: float) -> float:
    return found.total
