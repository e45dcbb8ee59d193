"""The progress of the demo's pipeline: Spark's reports of its batches, and the topic of its results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from millbeck.pipeline.demo.recount import Window, written
from millbeck.pipeline.running.progress import observed_values, progress_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from millbeck.cli.demo.topic_reader import TopicReader
    from millbeck.pipeline.demo.board import Figures


class Results:
    """Updates the figures; ``twice`` has the windows that were written more than once."""

    def __init__(self, figures: Figures, reader: TopicReader) -> None:
        self._figures = figures
        self._reader = reader
        self._last_batch = -1
        self.windows: dict[Window, int] = {}
        self.twice: list[Window] = []

    def read(self) -> None:
        """Read the windows that have closed since the last call."""
        found, twice = written((record.key or b"", record.value or b"") for record in self._reader.read())
        self.twice += [*twice, *(found.keys() & self.windows.keys())]
        # A new mapping: the display may be reading the old one.
        self.windows = {**self.windows, **found}
        self._figures.windows = self.windows

    def add_batch(self, reported: Any, observed: str) -> None:
        """Add Spark's report of its last batch, unless it was added or had no records."""
        if reported is None:
            return
        report = reported if isinstance(reported, dict) else json.loads(reported.json)
        progress = progress_of(report)
        if progress.batch == self._last_batch or not progress.rows:
            return
        self._last_batch = progress.batch
        lag = "" if progress.lag is None else f"lag {progress.lag:,}, "
        rate = f"{progress.rows_per_second:,.0f} records/s"
        self._figures.batch = f"batch {progress.batch}: {rate}, {lag}took {progress.batch_seconds:.1f} s"
        self._figures.read_count += progress.rows
        self._figures.so_far = _added(
            self._figures.so_far, observed_values(report.get("observedMetrics", {}).get(observed))
        )


def _added(totals: Mapping[str, int], more: Mapping[str, int | None]) -> dict[str, int]:
    return {name: totals.get(name, 0) + (more.get(name) or 0) for name in {**totals, **more}}
