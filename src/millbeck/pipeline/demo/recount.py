"""Recompute the demo's result from the same topics and compare it with the pipeline's. Pure."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from millbeck.pipeline.demo.orders import UNKNOWN

WINDOW_MS: Final = 60 * 1000

Window = tuple[str, int]
"""The region and the start of the window."""


def recount(
    customers: Iterable[tuple[bytes, bytes]], orders: Iterable[tuple[int, bytes]], *, before_ms: int
) -> dict[Window, int]:
    """The sum in cents by window, of the windows that end at or before ``before_ms``.

    ``customers`` are keys and values, ``orders`` timestamps and values.
    """
    regions = {key.decode(): json.loads(value)["region"] for key, value in customers}
    totals: dict[Window, int] = defaultdict(int)
    for timestamp_ms, value in orders:
        order = json.loads(value)
        start = timestamp_ms - timestamp_ms % WINDOW_MS
        if start + WINDOW_MS <= before_ms:
            totals[regions.get(order["customer"], UNKNOWN), start] += order["cents"]
    return dict(totals)


def written(rows: Iterable[tuple[bytes, bytes]]) -> tuple[dict[Window, int], list[Window]]:
    """Read the pipeline's result by window, and the windows that it wrote more than once."""
    totals: dict[Window, int] = {}
    twice = []
    for key, value in rows:
        row = json.loads(value)
        window = (key.decode(), int(row["window_start"]))
        if window in totals:
            twice.append(window)
        totals[window] = int(row["total_cents"])
    return totals, twice


def differences(expected: dict[Window, int], found: dict[Window, int], twice: list[Window]) -> list[str]:
    """A description of each difference; empty if both results are equal."""
    wrong = [f"{_name(window)} was written more than once" for window in twice]
    for window in sorted(expected.keys() | found.keys(), key=lambda one: (one[1], one[0])):
        if window not in found:
            wrong.append(f"{_name(window)} is missing: {expected[window]} cents were ordered")
        elif window not in expected:
            wrong.append(f"{_name(window)} has {found[window]} cents, but nothing was ordered")
        elif expected[window] != found[window]:
            wrong.append(f"{_name(window)} has {found[window]} cents, the recount {expected[window]}")
    return wrong


def _name(window: Window) -> str:
    return f"{window[0]} at {window[1]}"
