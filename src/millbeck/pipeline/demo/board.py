"""The output of the demo: figures of the log and the pipeline, revenue by region, and the summary. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from millbeck.pipeline.demo.recount import Window

COLUMNS: Final = 4
_WIDTH: Final = 13


@dataclass(slots=True, kw_only=True)
class Figures:
    """The figures shown by the demo; threads set single fields, and the display reads them."""

    bootstrap: str = ""
    stage: str = "starting a node"
    """The current step, until the pipeline's first batch is complete."""
    orders_per_second: int = 0
    orders_in: int = 0
    log_bytes: int | None = None
    batch: str = ""
    """The progress line of Spark's last batch."""
    read_count: int = 0
    """The number of records that the pipeline has read."""
    so_far: Mapping[str, int] = field(default_factory=dict)
    """Revenue in cents by region, of everything read so far."""
    windows: Mapping[Window, int] = field(default_factory=dict)
    """Revenue in cents by region and window, of the closed windows."""

    @property
    def has_results(self) -> bool:
        return bool(self.so_far or self.windows)


def board(figures: Figures) -> list[str]:
    """The lines shown, at most 79 characters wide with the demo's own names and rates."""
    log = "" if figures.log_bytes is None else f", {megabytes(figures.log_bytes)}"
    lines = [
        f"log       {figures.bootstrap or '-'}{log}",
        f"orders    {figures.orders_in:,} written, {figures.orders_per_second:,} a second",
        f"pipeline  {figures.batch or figures.stage}",
        f"results   {figures.read_count:,} records read, {len(figures.windows):,} windows of one minute closed",
    ]
    return [*lines, "", *table(figures.so_far, figures.windows)] if figures.has_results else lines


def table(so_far: Mapping[str, int], windows: Mapping[Window, int]) -> list[str]:
    """Revenue by region: everything so far, and the last windows side by side."""
    starts = sorted({start for _, start in windows})[-COLUMNS:]
    regions = sorted({*so_far, *(region for region, _ in windows)})
    width = max(map(len, [*regions, "revenue"]))
    heads = ["so far", *map(_clock, starts)]
    lines = [f"{'revenue':<{width}}" + "".join(f"{head:>{_WIDTH}}" for head in heads)]
    for region in regions:
        cells = [so_far.get(region), *(windows.get((region, start)) for start in starts)]
        lines.append(f"{region:<{width}}" + "".join(map(_amount, cells)))
    return lines


def line(figures: Figures) -> str:
    """The figures in one line, for output that cannot be redrawn."""
    log = "" if figures.log_bytes is None else f"log {megabytes(figures.log_bytes)}, "
    return (
        f"{log}{figures.orders_in:,} orders written, {figures.read_count:,} records read, "
        f"{len(figures.windows):,} windows closed; {figures.batch or figures.stage}"
    )


def megabytes(count: int) -> str:
    return f"{count / 1e6:.1f} MB"


def _clock(start_ms: int) -> str:
    return datetime.fromtimestamp(start_ms / 1000, UTC).strftime("%H:%M")


def _amount(cents: int | None) -> str:
    return f"{'-':>{_WIDTH}}" if cents is None else f"{cents / 100:>{_WIDTH},.2f}"
