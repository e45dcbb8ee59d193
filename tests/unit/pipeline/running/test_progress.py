"""Figures and a line from what Spark reports."""

from __future__ import annotations

from typing import Any

import pytest

from millbeck.pipeline.running.progress import progress_of

REPORTED: dict[str, Any] = {
    "batchId": 7,
    "numInputRows": 1234,
    "processedRowsPerSecond": 5678.9,
    "durationMs": {"triggerExecution": 1500},
    "sources": [
        {"endOffset": '{"orders": {"0": 10, "1": 5}}', "latestOffset": '{"orders": {"0": 12, "1": 5, "2": 3}}'},
        {"endOffset": {"customers": {"0": 1}}, "latestOffset": {"customers": {"0": 2}}},
    ],
    "stateOperators": [{"numRowsTotal": 3, "memoryUsedBytes": 2_500_000}, {"numRowsTotal": 4, "memoryUsedBytes": 0}],
}


def test_everything_people_watch_is_in_one_line() -> None:
    line = progress_of(REPORTED).line()
    assert line == "batch 7  5,679 rows/s  1,234 rows  lag 6  took 1.5 s  state 7 rows, 2 MB"


def test_rows_dropped_by_the_watermark_are_told_with_the_watermark() -> None:
    dropped = [{"numRowsDroppedByWatermark": 3}]
    moved = {"watermark": "2026-01-01T00:00:00.000Z"}
    found = progress_of({**REPORTED, "eventTime": moved, "stateOperators": dropped})
    assert (found.late, found.watermark) == (3, "2026-01-01T00:00:00.000Z")
    assert "late 3 (before 2026-01-01T00:00:00.000Z)" in found.line()


def test_what_is_not_known_is_left_out() -> None:
    progress = progress_of({"batchId": 0, "sources": [{"endOffset": "17", "latestOffset": None}]})
    assert progress.lag is None
    assert progress.line() == "batch 0  0 rows/s  0 rows  took 0.0 s"


@pytest.mark.parametrize("figure", ["NaN", "Infinity", None, float("inf")])
def test_figures_that_are_none_are_zero(figure: object) -> None:
    assert progress_of({"processedRowsPerSecond": figure}).rows_per_second == 0


def test_without_sums_the_sources_are_added_up() -> None:
    found = progress_of(
        {
            "sources": [
                {"numInputRows": 100, "processedRowsPerSecond": 29.5},
                {"numInputRows": 3, "processedRowsPerSecond": "NaN"},
            ]
        }
    )
    assert (found.rows, found.rows_per_second) == (103, 29.5)


def test_marker_rows_of_idle_sources_are_no_rows() -> None:
    idle = {"startOffset": '{"a": {"0": 7}}', "endOffset": '{"a": {"0": 7}, "$idle": 5}', "numInputRows": 2}
    busy = {"startOffset": '{"b": {"0": 7}}', "endOffset": '{"b": {"0": 9}, "$idle": 5}', "numInputRows": 3}
    later = {"startOffset": '{"b": {"0": 7}, "$idle": 5}', "endOffset": '{"b": {"0": 9}, "$idle": 5}'}
    assert progress_of({"numInputRows": 7, "sources": [idle, busy, {**later, "numInputRows": 2}]}).rows == 4
