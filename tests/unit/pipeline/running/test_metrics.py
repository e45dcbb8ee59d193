"""The figures of the progress line under names that stay."""

from __future__ import annotations

from millbeck.pipeline.running.metrics import PipelineMetrics
from millbeck.pipeline.running.progress import BatchProgress


def _progress(batch: int, rows: int, lag: int | None, seconds: float = 0.5) -> BatchProgress:
    return BatchProgress(
        batch=batch,
        rows=rows,
        rows_per_second=rows / seconds,
        lag=lag,
        batch_seconds=seconds,
        state_rows=10 * batch,
        state_bytes=1000 * batch,
        late=batch if batch == 3 else 0,
    )


def _figures(metrics: PipelineMetrics) -> dict[str, str]:
    lines = [line for line in metrics.registry.render().splitlines() if line.startswith("millbeck_pipeline_")]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_each_batch_is_counted_and_each_look_is_shown() -> None:
    restarts = [0]
    metrics = PipelineMetrics("revenue", restarts=lambda: restarts[0], is_running=lambda: True)
    metrics.wrote(_progress(3, 100, 50))
    metrics.wrote(_progress(4, 60, 5))
    metrics.looked(_progress(5, 0, None))
    restarts[0] = 2
    figures = _figures(metrics)
    label = '{pipeline="revenue"}'
    assert {name.removesuffix(label): figures[name] for name in figures if name.endswith(label)} == {
        "millbeck_pipeline_rows_total": "160",
        "millbeck_pipeline_batches_total": "2",
        "millbeck_pipeline_batch": "4",
        "millbeck_pipeline_batch_ms_sum": "1000.0",
        "millbeck_pipeline_batch_ms_count": "2",
        "millbeck_pipeline_late_records_total": "3",
        "millbeck_pipeline_rows_per_second": "120.0",
        "millbeck_pipeline_lag_records": "5",
        "millbeck_pipeline_state_rows": "50",
        "millbeck_pipeline_state_bytes": "5000",
        "millbeck_pipeline_restarts_total": "2",
        "millbeck_pipeline_running": "1",
    }
