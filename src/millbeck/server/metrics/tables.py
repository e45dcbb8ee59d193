"""Metrics that are one number each: declared from tables, read from the state itself when asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from millbeck.kernel.metrics import Registry

Single = tuple[str, str, Callable[[], float]]
"""Name, help and how to read it."""


def declare_single(registry: Registry, prefix: str, table: Iterable[Single]) -> None:
    """Declare metrics without labels; those that are named a total are counters, the others gauges."""
    for name, help_text, read in table:
        if name.endswith("_total"):

            def rows(read: Callable[[], float] = read) -> list[tuple[tuple[()], float]]:
                return [((), read())]

            registry.counter_from(prefix + name, help_text, [], rows)
        else:
            registry.gauge(prefix + name, help_text).child().read = read
