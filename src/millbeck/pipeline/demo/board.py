"""The table that the demo shows: revenue by region, the last windows side by side. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from millbeck.pipeline.demo.recount import Window

COLUMNS: Final = 5


def board(totals: Mapping[Window, int]) -> list[str]:
    """Lines of equal build; empty when no window has closed yet."""
    starts = sorted({start for _, start in totals})[-COLUMNS:]
    if not starts:
        return []
    regions = sorted({region for region, _ in totals})
    width = max(len(region) for region in [*regions, "region"])
    lines = [f"{'region':<{width}}" + "".join(f"{_clock(start):>14}" for start in starts)]
    for region in regions:
        amounts = "".join(_amount(totals.get((region, start))) for start in starts)
        lines.append(f"{region:<{width}}{amounts}")
    return lines


def _clock(start_ms: int) -> str:
    return datetime.fromtimestamp(start_ms / 1000, UTC).strftime("%H:%M")


def _amount(cents: int | None) -> str:
    return f"{'-':>14}" if cents is None else f"{cents / 100:>14,.2f}"
