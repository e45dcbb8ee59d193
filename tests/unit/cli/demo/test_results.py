"""What the demo takes from Spark's reports and from the topic of results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from millbeck.cli.demo.results import Results
from millbeck.cli.demo.topic_reader import TopicReader
from millbeck.pipeline.demo.board import Figures
from millbeck.records.record import Record


def _results(*reads: list[Record]) -> tuple[Figures, Results]:
    figures, left = Figures(), list(reads)
    reader = SimpleNamespace(read=lambda: left.pop(0))
    return figures, Results(figures, cast("TopicReader", reader))


def _report(batch: int, rows: int, **cents: int | None) -> dict[str, Any]:
    return {
        "batchId": batch,
        "numInputRows": rows,
        "processedRowsPerSecond": 250.0,
        "durationMs": {"triggerExecution": 1500},
        "observedMetrics": {"sales": SimpleNamespace(asDict=lambda: cents)} if cents else {},
    }


def test_each_batch_is_added_once() -> None:
    figures, results = _results()
    results.add_batch(None, "sales")
    for report in (
        _report(0, 100, north=5, east=None),
        _report(0, 100, north=5),
        _report(1, 0),
        _report(1, 20, north=2),
    ):
        results.add_batch(report, "sales")
    assert figures.so_far == {"north": 7, "east": 0}
    assert figures.read_count == 120
    assert figures.batch == "batch 1: 250 records/s, took 1.5 s"


def _record(region: bytes, start: int, cents: int) -> Record:
    value = b'{"window_start": %d, "total_cents": %d}' % (start, cents)
    return Record(offset=0, timestamp=0, key=region, value=value, headers=())


def test_a_window_that_comes_again_in_a_later_read_is_noticed() -> None:
    figures, results = _results([_record(b"north", 0, 5)], [_record(b"north", 60_000, 6), _record(b"north", 0, 5)])
    results.read()
    assert results.twice == []
    results.read()
    assert results.twice == [("north", 0)]
    assert figures.windows == {("north", 0): 5, ("north", 60_000): 6}
