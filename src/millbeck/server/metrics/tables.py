"""Declare metrics without labels from tables; values are read when the metrics are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from millbeck.kernel.metrics import Registry

Single = tuple[str, str, Callable[[], float]]
"""Name, help text and a function that reads the value."""


def declare_single(registry: Registry, prefix: str, table: Iterable[Single]) -> None:
    """Declare metrics without labels; names that end in ``_total`` are counters, the others gauges."""
    for name, help_text, read in table:
        if name.endswith("_total"):

            def rows(read: Callable[[], float] = read) -> list[tuple[tuple[()], float]]:
                return [((), read())]

            registry.callback_counter(prefix + name, help_text, [], rows)
        else:
            registry.gauge(prefix + name, help_text).child().read = read
