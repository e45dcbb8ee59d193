"""Requests are counted and timed by API, errors by name."""

from __future__ import annotations

from millbeck.kernel.metrics import Registry
from millbeck.server.request_metrics import RequestMetrics


def test_requests_times_and_errors_are_shown_by_api() -> None:
    registry = Registry()
    metrics = RequestMetrics(registry)
    produce, fetch = metrics.statistics(0, "Produce"), metrics.statistics(1, "Fetch")
    for seconds in (0.001, 0.002, 0.003):
        produce.finished(seconds)
    fetch.finished(0.5)
    fetch.failed(70)
    fetch.failed(70)
    fetch.failed(12345)
    text = registry.render()
    assert 'kafka_network_requestmetrics_requests_total{request="Produce"} 3' in text
    assert 'kafka_network_requestmetrics_requests_total{request="Fetch"} 1' in text
    assert 'kafka_network_requestmetrics_totaltimems_count{request="Produce"} 3' in text
    assert 'kafka_network_requestmetrics_totaltimems_sum{request="Fetch"} 500' in text
    errors = 'kafka_network_requestmetrics_errors_total{request="Fetch",error='
    assert f'{errors}"FETCH_SESSION_ID_NOT_FOUND"}} 2' in text
    assert f'{errors}"12345"}} 1' in text
