"""Requests are counted and timed by API, errors by name."""

from __future__ import annotations

import pytest

from millbeck.kernel.metrics import Registry
from millbeck.server.network.request_metrics import RequestMetrics


def test_requests_times_and_errors_are_shown_by_api() -> None:
    registry = Registry()
    metrics = RequestMetrics(registry)
    produce, fetch = metrics.statistics(0, "Produce"), metrics.statistics(1, "Fetch")
    for seconds in (0.001, 0.002, 0.003):
        produce.times.record(1000 * seconds)
        produce.requests.value += 1
    fetch.times.record(500)
    fetch.requests.value += 1
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


def test_the_stages_of_a_request_are_told_apart_and_counted_for_those_it_stands_for() -> None:
    registry = Registry()
    produce = RequestMetrics(registry).statistics(0, "Produce")
    waiting = produce.timed(10.0, 10.001, 16)
    waiting.handled(10.003)
    waiting.answered(10.007)
    waiting.sent(10.015, 10.031)
    text = registry.render()
    for name, milliseconds in (
        ("requestqueue", 1),
        ("local", 2),
        ("remote", 4),
        ("responsequeue", 8),
        ("responsesend", 16),
    ):
        metric = f"kafka_network_requestmetrics_{name}timems"
        assert f'{metric}_count{{request="Produce"}} 16' in text
        (line,) = [line for line in text.splitlines() if line.startswith(f"{metric}_sum")]
        assert float(line.split()[-1]) == pytest.approx(16 * milliseconds)


def test_what_a_handler_answers_itself_has_not_waited() -> None:
    registry = Registry()
    metadata = RequestMetrics(registry).statistics(3, "Metadata")
    at_once = metadata.timed(1.0, 1.0, 1)
    at_once.answered(1.5)
    at_once.handled(1.6)
    at_once.sent(1.75, 1.75)
    text = registry.render()
    sums = {
        line.split("{")[0].removeprefix("kafka_network_requestmetrics_"): float(line.split()[-1])
        for line in text.splitlines()
        if "timems_sum" in line
    }
    assert (sums["localtimems_sum"], sums["remotetimems_sum"], sums["responsequeuetimems_sum"]) == (500, 0, 250)
